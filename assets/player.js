// Live playback: a click becomes a request, the request a stream, the stream sound, as early as can be.
// `window.studioPlayer` knows no buttons; it tells the page what happens through events ("change", "piece", "level",
// "refused", "ended") and keeps the figures of the latest run in `stats`.

(() => {
  const FAR = 0.32; // seconds of sound to hold before starting when the studio is on another machine, or after a gap
  const NEAR = 0.16;
  const FADE = 0.005;
  const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

  // Plays through the AudioWorklet ring buffer.
  class RingSink {
    constructor(context, channels, heard) {
      this.node = new AudioWorkletNode(context, "ring", {
        numberOfInputs: 0,
        outputChannelCount: [channels],
        processorOptions: { channels },
      });
      this.node.port.onmessage = ({ data }) => heard(data);
      this.node.connect(context.destination);
    }

    begin(source, run, prebuffer) {
      this.run = run;
      this.node.port.postMessage({ source, run, prebuffer, rebuffer: FAR }, [source]);
    }

    stop() {
      this.node.port.postMessage({ stop: true, run: this.run });
    }
  }

  // Where a page has no AudioWorklet (plain http on a network name): buffers placed one after another on the clock.
  class ScheduledSink {
    constructor(context, channels, heard) {
      Object.assign(this, { context, channels });
      this.heard = (message) => heard({ run: this.run, ...message });
    }

    begin(source, run, prebuffer) {
      Object.assign(this, { source, run, wait: prebuffer, held: [], seconds: 0, at: 0, ended: false, audible: false });
      Object.assign(this, { nodes: new Set(), peak: 0, first: 0, placed: 0 });
      this.gain = this.context.createGain();
      this.gain.connect(this.context.destination);
      source.onmessage = ({ data }) => this.take(data);
      this.timer = setInterval(() => this.report(), 40);
    }

    take({ samples, end }) {
      if (end) this.ended = true;
      else {
        this.held.push(samples);
        this.seconds += samples.length / this.channels / this.context.sampleRate;
      }
      if (this.seconds >= this.wait || this.ended || this.at > this.context.currentTime) this.place();
      if (this.ended && this.nodes.size === 0) this.finish(false);
    }

    place() {
      const rate = this.context.sampleRate;
      const late = this.at < this.context.currentTime;
      if (late && this.placed > 0 && this.held.length > 0) {
        this.heard({ underrun: true });
        this.wait = FAR;
      }
      if (late) this.at = Math.ceil((this.context.currentTime + 0.02) * rate) / rate;
      this.first ||= this.at;
      for (const samples of this.held.splice(0)) this.schedule(samples, rate);
      this.seconds = 0;
    }

    schedule(samples, rate) {
      const count = samples.length / this.channels;
      const buffer = this.context.createBuffer(this.channels, count, rate);
      for (let channel = 0; channel < this.channels; channel++) {
        const plane = buffer.getChannelData(channel);
        for (let frame = 0; frame < count; frame++) {
          plane[frame] = samples[frame * this.channels + channel] / 32768;
          if (!this.audible && Math.abs(plane[frame]) > 10 ** (-50 / 20)) {
            this.audible = true;
            this.heard({ audible: this.at + frame / rate });
          }
        }
      }
      const node = new AudioBufferSourceNode(this.context, { buffer });
      node.connect(this.gain);
      node.start(this.at);
      node.onended = () => {
        this.nodes.delete(node);
        if (this.ended && this.nodes.size === 0) this.finish(false);
      };
      this.nodes.add(node);
      this.at = Math.round(this.at * rate + count) / rate; // whole samples, so that pieces join exactly
      this.placed += count;
    }

    report() {
      const played = Math.max(0, Math.min(this.placed, (this.context.currentTime - this.first) * this.context.sampleRate));
      this.heard({ played: this.placed ? Math.round(played) : 0, peak: 0 });
    }

    stop() {
      const now = this.context.currentTime;
      this.gain.gain.setValueAtTime(1, now);
      this.gain.gain.linearRampToValueAtTime(0, now + FADE);
      setTimeout(() => this.finish(true), 1000 * FADE);
    }

    finish(stopped) {
      if (!this.source) return;
      clearInterval(this.timer);
      this.source.close();
      for (const node of this.nodes) node.stop();
      this.report();
      this.source = null;
      this.heard({ finished: true, stopped });
    }
  }

  class StudioPlayer extends EventTarget {
    constructor() {
      super();
      this.state = "idle"; // idle, waiting, speaking
      this.stats = {};
      this.run = 0;
      this.sink = null;
    }

    get root() {
      return `${(window.gradio_config?.root ?? window.location.origin).replace(/\/$/, "")}/studio`;
    }

    // Everything slow is made ahead of the first click: the context, the worklet, the worker. When another engine speaks
    // it is made anew for its sound, once what still plays has ended.
    async prepare(sampleRate, channels) {
      this.wanted = { sampleRate, channels };
      if (!this.worker) {
        this.worker = new Worker(`${this.root}/page/stream-worker.js`);
        this.worker.onmessage = ({ data }) => data.run === this.run && this.tell(data);
        for (const gesture of ["pointerdown", "keydown"]) {
          addEventListener(gesture, () => this.context?.resume(), { capture: true });
        }
      }
      if (this.state === "idle") await this.tune();
    }

    async tune() {
      const { sampleRate, channels } = this.wanted;
      if (sampleRate === this.sampleRate && channels === this.channels) return;
      Object.assign(this, { sampleRate, channels, sink: null });
      this.context?.close();
      const context = (this.context = new AudioContext({ sampleRate, latencyHint: "interactive" }));
      const hear = (data) => this.hear(data);
      if (!context.audioWorklet) this.sink = new ScheduledSink(context, channels, hear);
      else {
        await context.audioWorklet.addModule(`${this.root}/page/ring-worklet.js`);
        if (this.context === context) this.sink = new RingSink(context, channels, hear);
      }
      this.emit("ready");
    }

    // `clicked` is the click's own time on the clock of performance.now().
    speak(request, clicked = performance.now()) {
      if (this.state !== "idle" || !this.sink) return;
      this.context.resume();
      this.run++;
      const { port1, port2 } = new MessageChannel();
      this.stats = { clicked, firstAudioMs: null, underruns: 0, bytes: 0, sha256: null, sampleRate: this.sampleRate };
      Object.assign(this.stats, { channels: this.channels, made: 0, playedSamples: 0, played: 0, status: null });
      this.sinkDone = this.streamDone = false;
      this.sink.begin(port1, this.run, LOOPBACK.test(window.location.hostname) ? NEAR : FAR);
      this.worker.postMessage({ ask: { number: this.run, root: this.root, request, port: port2 } }, [port2]);
      this.change("waiting");
    }

    stop() {
      if (this.state === "idle") return;
      this.stats.stopClicked = Date.now();
      this.sink.stop();
      this.worker.postMessage({ stop: true });
    }

    tell({ refused, accepted, piece, received, status }) {
      if (refused) {
        this.sink.stop();
        this.sinkDone = this.streamDone = true;
        this.change("idle");
        this.emit("refused", refused);
      }
      if (accepted) {
        this.stats.status = accepted;
        this.change("speaking");
      }
      if (piece) {
        this.stats.made += piece.duration;
        this.emit("piece", piece);
      }
      if (received) Object.assign(this.stats, received);
      if (status) {
        this.stats.status = { ...this.stats.status, ...status };
        this.streamDone = true;
        this.emit("ended", this.stats.status);
        this.settle();
      }
    }

    hear({ run, audible, underrun, played, peak, finished }) {
      if (run !== this.run) return;
      if (audible !== undefined) this.stats.firstAudioMs = this.onClock(audible) - this.stats.clicked;
      if (underrun) this.stats.underruns++;
      if (played !== undefined) {
        this.stats.playedSamples = played;
        this.stats.played = played / this.sampleRate;
        this.emit("level", { played: this.stats.played, peak: peak ?? 0 });
      }
      if (finished) {
        this.sinkDone = true;
        this.settle();
      }
    }

    // When a moment of the audio clock leaves the loudspeaker, on the clock of performance.now().
    onClock(seconds) {
      const { contextTime, performanceTime } = this.context.getOutputTimestamp();
      if (contextTime > 0) return performanceTime + 1000 * (seconds - contextTime);
      return performance.now() + 1000 * (seconds - this.context.currentTime + (this.context.outputLatency || 0));
    }

    settle() {
      if (this.sinkDone && this.streamDone && this.state !== "idle") {
        this.change("idle");
        this.emit("finished", this.stats);
      }
    }

    change(state) {
      this.state = state;
      this.emit("change", state);
      if (state === "idle") this.tune();
    }

    emit(name, detail) {
      this.dispatchEvent(new CustomEvent(name, { detail }));
    }
  }

  window.studioPlayer ??= new StudioPlayer();
})();
