// Plays int16 samples that arrive in pieces: waits for a little, bridges gaps without clicks, says what was heard.
// Knows nothing of the network or the page. Pieces come over a MessagePort as {samples: Int16Array} (interleaved) or
// {end: true}; everything said back goes to the page.

const RAMP = 96; // samples that fade a gap out and in again
const STOP_SECONDS = 0.005;
const AUDIBLE = 10 ** (-50 / 20);
const REPORT_SECONDS = 0.04;

class Ring extends AudioWorkletProcessor {
  constructor({ processorOptions }) {
    super();
    this.channels = processorOptions.channels;
    this.forget();
    this.port.onmessage = ({ data }) => {
      if (data.source) this.begin(data);
      if (data.stop && data.run === this.run) this.stop();
    };
  }

  forget() {
    this.source?.close();
    this.source = null;
    this.pieces = [];
    this.offset = 0; // frames of pieces[0] that were played
    this.buffered = 0; // frames in all pieces
    this.playing = this.ended = this.audible = this.gap = false;
    this.played = 0;
    this.stopping = Infinity; // frames left to play while fading
    this.rampIn = 0; // frames left of a fade-in
    this.last = new Float32Array(this.channels);
    this.tail = 0; // frames left of the slope from the last value down to zero
    this.peak = 0;
    this.reported = 0;
  }

  begin({ source, run, prebuffer, rebuffer }) {
    this.forget();
    this.run = run;
    this.wanted = Math.round(prebuffer * sampleRate);
    this.rebuffer = Math.round(rebuffer * sampleRate);
    this.source = source;
    source.onmessage = ({ data }) => {
      if (data.end) this.ended = true;
      else {
        this.pieces.push(data.samples);
        this.buffered += data.samples.length / this.channels;
      }
    };
  }

  stop() {
    if (this.playing) this.stopping = Math.min(this.stopping, Math.round(STOP_SECONDS * sampleRate));
    else if (this.source) this.finish(true);
  }

  process(_inputs, [output]) {
    const size = output[0].length;
    let count = 0;
    if (this.source) {
      if (!this.playing && (this.buffered >= this.wanted || this.ended)) this.start();
      if (this.playing) count = Math.min(size, this.buffered, this.stopping);
    }
    for (let frame = 0; frame < count; frame++) this.play(output, frame);
    for (let frame = count; frame < size && this.tail > 0; frame++) this.slope(output, frame);
    if (this.playing && count < size) this.pause();
    if (this.source && this.played - this.reported > REPORT_SECONDS * sampleRate) this.report();
    return true;
  }

  start() {
    this.playing = true;
    if (this.gap) this.rampIn = RAMP;
    this.gap = false;
  }

  play(output, frame) {
    const piece = this.pieces[0];
    let gain = this.rampIn > 0 ? 1 - this.rampIn-- / RAMP : 1;
    if (this.stopping !== Infinity) gain *= this.stopping-- / (STOP_SECONDS * sampleRate);
    for (let channel = 0; channel < this.channels; channel++) {
      const value = (gain * piece[this.offset * this.channels + channel]) / 32768;
      output[channel][frame] = this.last[channel] = value;
      this.peak = Math.max(this.peak, Math.abs(value));
    }
    if (!this.audible && this.peak > AUDIBLE) {
      this.audible = true;
      this.say({ audible: (currentFrame + frame) / sampleRate });
    }
    this.tail = RAMP;
    this.played++;
    this.buffered--;
    if (++this.offset * this.channels >= piece.length) {
      this.pieces.shift();
      this.offset = 0;
    }
  }

  slope(output, frame) {
    this.tail--;
    for (let channel = 0; channel < this.channels; channel++) {
      output[channel][frame] = (this.last[channel] * this.tail) / RAMP;
    }
  }

  pause() {
    this.playing = false;
    if (this.stopping <= 0 || (this.ended && this.buffered === 0)) {
      this.finish(this.stopping <= 0);
      return;
    }
    this.gap = true;
    this.wanted = this.rebuffer;
    this.say({ underrun: true });
  }

  finish(stopped) {
    this.report();
    this.say({ finished: true, stopped });
    const { last, tail } = this; // the slope to zero goes on
    this.forget();
    Object.assign(this, { last, tail });
  }

  report() {
    this.say({ played: this.played, peak: this.peak });
    this.reported = this.played;
    this.peak = 0;
  }

  say(message) {
    this.port.postMessage({ run: this.run, ...message });
  }
}

registerProcessor("ring", Ring);
