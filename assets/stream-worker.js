// Asks for speech and hands its samples on as they come, off the page's own thread, so that a busy page makes no gap.
// In: {ask: {root, request, port}} or {stop: true}. Out: {refused}, {accepted}, {piece}, {received}, {status}.

const PEAKS_PER_SECOND = 25;
let current = null;

self.onmessage = ({ data }) => {
  if (data.ask) {
    current?.abort.abort();
    current = { ...data.ask, abort: new AbortController(), job: null };
    speak(current);
  }
  if (data.stop && current) stop(current);
};

async function speak(run) {
  let answer, job;
  try {
    answer = await fetch(`${run.root}/speech`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(run.request),
      signal: run.abort.signal,
    });
    job = await answer.json();
  } catch {
    return run.abort.signal.aborted ? finish(run) : say(run, { refused: { error: unreachable(answer), status: 0 } });
  }
  if (!answer.ok) return say(run, { refused: { error: job.error, status: answer.status } });
  run.job = job.job;
  say(run, { accepted: job });
  if (run.abort.signal.aborted) await cancel(run);
  else await receive(run);
  finish(run);
}

function unreachable(answer) {
  return answer
    ? "The studio answered with an error. The terminal it runs in says what happened."
    : "The studio does not answer. Is it still running?";
}

async function receive(run) {
  const sha = new Sha256();
  let rest = new Uint8Array(0);
  let complete = false;
  try {
    const answer = await fetch(`${run.root}/speech/${run.job}/pcm`, { signal: run.abort.signal });
    if (!answer.ok) throw new Error(`samples: ${answer.status}`);
    const channels = Number(answer.headers.get("X-Channels"));
    const rate = Number(answer.headers.get("X-Sample-Rate"));
    const reader = answer.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      sha.update(value);
      rest = forward(run, join(rest, value), channels, rate);
    }
    complete = true;
  } catch (error) {
    if (!run.abort.signal.aborted) run.lost = error.message;
  }
  run.port.postMessage({ end: true });
  say(run, { received: { bytes: sha.bytes, sha256: sha.hex(), complete } });
}

// A network piece may end inside a sample: whole sample frames go on, the rest waits for the next piece.
function forward(run, bytes, channels, rate) {
  const whole = bytes.length - (bytes.length % (2 * channels));
  if (whole > 0) {
    const samples = new Int16Array(bytes.slice(0, whole).buffer);
    say(run, { piece: { bytes: whole, duration: whole / 2 / channels / rate, peaks: peaks(samples, channels, rate) } });
    run.port.postMessage({ samples }, [samples.buffer]);
  }
  return bytes.slice(whole);
}

function join(left, right) {
  if (left.length === 0) return right;
  const both = new Uint8Array(left.length + right.length);
  both.set(left);
  both.set(right, left.length);
  return both;
}

function peaks(samples, channels, rate) {
  const step = Math.round(rate / PEAKS_PER_SECOND) * channels;
  const found = [];
  for (let start = 0; start < samples.length; start += step) {
    let peak = 0;
    for (let index = start; index < Math.min(start + step, samples.length); index++) {
      peak = Math.max(peak, Math.abs(samples[index]));
    }
    found.push(peak / 32768);
  }
  return found;
}

function stop(run) {
  run.abort.abort();
  if (run.job) cancel(run);
}

function cancel(run) {
  return fetch(`${run.root}/speech/${run.job}/stop`, { method: "POST", keepalive: true }).catch(() => {});
}

// An error after the headers cannot change the answer's status, so the end of the body is not yet the verdict.
async function finish(run) {
  let status = { state: "stopped", error: null };
  for (let attempt = 0; run.job && attempt < 60; attempt++) {
    const answer = await fetch(`${run.root}/speech/${run.job}`).catch(() => null);
    status = answer?.ok ? await answer.json() : { state: "failed", error: "The studio does not answer. Is it still running?" };
    if (["done", "stopped", "failed"].includes(status.state)) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  say(run, { status });
  if (current === run) current = null;
}

function say(run, message) {
  self.postMessage({ run: run.number, ...message });
}

// SHA-256 over pieces; crypto.subtle takes only whole inputs and is absent over plain http on a network.
class Sha256 {
  static K = Sha256.roots(64, 3);

  static roots(count, power) {
    const words = new Uint32Array(count);
    for (let candidate = 2, found = 0; found < count; candidate++) {
      let prime = true;
      for (let factor = 2; factor * factor <= candidate; factor++) prime &&= candidate % factor !== 0;
      if (prime) {
        const root = candidate ** (1 / power);
        words[found++] = Math.floor((root - Math.floor(root)) * 2 ** 32);
      }
    }
    return words;
  }

  constructor() {
    this.state = Sha256.roots(8, 2);
    this.block = new Uint8Array(64);
    this.words = new Uint32Array(64);
    this.bytes = 0;
  }

  update(bytes) {
    let filled = this.bytes % 64;
    this.bytes += bytes.length;
    for (let index = 0; index < bytes.length; ) {
      const part = bytes.subarray(index, index + 64 - filled);
      this.block.set(part, filled);
      index += part.length;
      filled += part.length;
      if (filled === 64) {
        this.compress();
        filled = 0;
      }
    }
  }

  compress() {
    const w = this.words;
    const view = new DataView(this.block.buffer);
    const turn = (x, n) => (x >>> n) | (x << (32 - n));
    for (let i = 0; i < 16; i++) w[i] = view.getUint32(4 * i);
    for (let i = 16; i < 64; i++) {
      const low = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ (w[i - 15] >>> 3);
      const high = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ (w[i - 2] >>> 10);
      w[i] = w[i - 16] + low + w[i - 7] + high;
    }
    let [a, b, c, d, e, f, g, h] = this.state;
    for (let i = 0; i < 64; i++) {
      const first = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + Sha256.K[i] + w[i]) | 0;
      const second = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((value, i) => (this.state[i] += value));
  }

  hex() {
    const bytes = this.bytes;
    const padding = new Uint8Array(72 - ((bytes + 8) % 64));
    padding[0] = 0x80;
    const view = new DataView(padding.buffer);
    view.setUint32(padding.length - 8, Math.floor((bytes * 8) / 2 ** 32));
    view.setUint32(padding.length - 4, (bytes * 8) >>> 0);
    this.update(padding);
    this.bytes = bytes;
    return Array.from(this.state, (word) => word.toString(16).padStart(8, "0")).join("");
  }
}
