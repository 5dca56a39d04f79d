// The page's own behaviour around the player: lists whose rows keep their focus and their sound, the stage with its
// waveform and figures, and keys. Needs notices.js, voice.js and models.js before it.

(() => {
  const player = () => window.studioPlayer;
  const find = (selector, within = document) => within.querySelector(selector);
  const { element, toast, ask, dismiss } = window.studioNotices;
  const { audition, silence } = window.studioVoice;

  // Rows come from the server as {id, html}, already escaped there. Only rows that changed are touched, so a take that
  // plays goes on playing and the keyboard stays where it was.
  function list(root, props, watch, trigger) {
    const rows = find("[data-rows]", root);
    const render = () => {
      const { items = [], selected = null, more = false, note, warning } = props.value ?? {};
      if (warning) find("[data-warning]", root).textContent = warning;
      const present = new Map(Array.from(rows.children, (row) => [row.dataset.id, row]));
      const wanted = items.map(({ id, html }) => {
        const row = present.get(id);
        return row?.source === html ? row : dress(id, html);
      });
      const kept = new Set(wanted);
      for (const row of present.values()) if (!kept.has(row)) row.remove();
      wanted.forEach((row, index) => {
        if (rows.children[index] !== row) rows.insertBefore(row, rows.children[index] ?? null);
      });
      const chosen = selected && find(`input[value="${CSS.escape(selected)}"]`, rows);
      if (chosen) chosen.checked = true;
      root.dataset.empty = String(items.length === 0);
      root.dataset.more = String(more);
      root.dataset.loaded = "true";
      if (note) toast(note);
    };
    root.addEventListener("change", ({ target }) => {
      if (target.matches("[data-note]")) keep(target.dataset.note, { note: target.value });
      if (target.matches("input[type=radio]")) trigger("choose", { id: target.value });
    });
    root.addEventListener("click", async ({ target }) => {
      const button = target.closest("button");
      if (button?.dataset.play) audition(button, button.dataset.play, toast);
      if (button?.dataset.star) keep(button.dataset.star, { favourite: button.getAttribute("aria-pressed") !== "true" });
      if (button?.dataset.again) again(button.dataset.again);
      if (button?.dataset.details) window.studioVoice.open(button.dataset.details, () => trigger("changed", {}));
      if (button?.dataset.more !== undefined) trigger("older", { shown: rows.children.length });
      if (button?.dataset.remove && (await ask(button.dataset.question))) {
        trigger("remove", { id: button.dataset.remove });
      }
    });
    const keep = (id, change) =>
      window.studioVoice
        .post(`/takes/${id}`, change)
        .then(() => trigger("changed", {}))
        .catch(({ message }) => toast(message));
    watch("value", render);
    render();
  }

  function dress(id, html) {
    const row = element(html);
    row.source = html;
    row.dataset.id = id;
    for (const node of row.querySelectorAll("[data-src]")) node.src = player().root + node.dataset.src;
    for (const node of row.querySelectorAll("[data-href]")) node.href = player().root + node.dataset.href;
    for (const node of row.querySelectorAll("time")) node.textContent = moment(new Date(node.dateTime));
    return row;
  }

  function moment(date) {
    const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    if (date.toDateString() === new Date().toDateString()) return time;
    return `${date.toLocaleDateString([], { day: "numeric", month: "short" })}, ${time}`;
  }

  const small = (value) => (value < 1 ? Number(value.toPrecision(1)).toString() : value.toFixed(1));

  // The stage: what is being said right now, how loud, how far, and afterwards how it went.
  class Stage {
    constructor(root, trigger) {
      this.root = root;
      this.trigger = trigger;
      this.canvas = find("canvas", root);
      this.peaks = [];
      const on = (name, act) => player().addEventListener(name, ({ detail }) => act(detail));
      on("change", (state) => this.show(state));
      on("piece", (piece) => this.peaks.push(...piece.peaks) && this.draw());
      on("level", ({ played }) => this.move(played));
      on("refused", ({ error }) => this.refuse(error));
      on("ended", (status) => this.end(status));
      on("finished", (stats) => this.figures(stats.status));
      new ResizeObserver(() => this.draw()).observe(this.canvas);
      new MutationObserver(() => this.draw()).observe(document.body, { attributes: true, attributeFilter: ["class"] });
      this.show("idle");
    }

    show(state) {
      document.documentElement.dataset.studio = state;
      if (state === "waiting") {
        this.peaks = [];
        silence();
        document.querySelectorAll("audio").forEach((audio) => audio.pause());
        this.say("Asking…");
      }
      if (state === "speaking") this.figures(player().stats.status);
      const busy = state !== "idle";
      const speak = find("#speak");
      const stop = find("#stop");
      const lost = document.activeElement === (busy ? speak : stop);
      if (speak) speak.disabled = busy;
      if (stop) stop.disabled = !busy;
      if (lost) (busy ? stop : speak).focus({ preventScroll: true });
      this.move(player().stats.played ?? 0);
    }

    move(played) {
      this.played = played;
      const made = player().stats.made ?? 0;
      find(".clock", this.root).textContent = made ? `${played.toFixed(1)} s of ${made.toFixed(1)} s` : "";
      this.draw();
    }

    draw() {
      const { canvas, peaks } = this;
      const scale = window.devicePixelRatio || 1;
      const [width, height] = [canvas.clientWidth * scale, canvas.clientHeight * scale];
      if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
      const style = getComputedStyle(this.root);
      const pen = canvas.getContext("2d");
      pen.clearRect(0, 0, width, height);
      const slots = Math.max(Math.floor(width / (4 * scale)), 1);
      const group = Math.max(1, Math.ceil(peaks.length / slots)); // peaks in one bar, so that all of it fits
      for (let slot = 0; slot < slots; slot++) {
        const part = peaks.slice(slot * group, (slot + 1) * group);
        const level = part.length ? Math.sqrt(Math.max(...part)) : 0;
        const bar = Math.max(2 * scale, level * height * 0.94);
        const heard = part.length && (slot + 0.5) * group <= this.played * 25;
        pen.fillStyle = style.getPropertyValue(heard ? "--accent" : part.length ? "--quiet" : "--line");
        pen.beginPath();
        pen.roundRect(slot * 4 * scale, (height - bar) / 2, 2 * scale, bar, scale);
        pen.fill();
      }
    }

    refuse(error) {
      this.say("");
      toast(error);
      window.studioModels.refresh(); // it may be because another engine speaks now
    }

    end(status) {
      this.figures(status);
      if (status.error) toast(status.error);
      else if (status.state === "done" && status.sha256 !== player().stats.sha256) {
        toast("Some of the sound did not reach this page. The take below has all of it.");
      }
      this.trigger("ended", {});
    }

    // One line: where the codes came from, then how fast it went, on what, and with which seed.
    figures(status) {
      if (!status?.cache) return this.say(status?.state === "stopped" ? "Stopped." : "");
      const { firstAudioMs, underruns } = player().stats;
      const parts = [
        status.state === "stopped" && "stopped",
        firstAudioMs != null && `first audio ${Math.round(firstAudioMs)} ms`,
        status.first_audio_ms != null && `model ${Math.round(status.first_audio_ms)} ms`,
        status.realtime_speed && `${status.realtime_speed.toFixed(1)}× real time`,
        status.device && `${status.engine} on ${status.device}`,
        `seed ${status.seed}`,
        underruns > 0 && `${underruns} ${underruns === 1 ? "gap" : "gaps"}`,
      ];
      const codes = {
        hit: `codes from cache, ${small(status.lookup_ms)} ms`,
        kept: "codes kept with the first take",
        fill: `encoded now, ${Math.round(status.encode_ms)} ms`,
      }[status.cache];
      this.say(codes, parts.filter(Boolean));
    }

    say(first, rest = []) {
      const line = find(".outcome", this.root);
      const words = [first, ...rest].filter(Boolean);
      line.replaceChildren(...words.map((word) => Object.assign(document.createElement("span"), { textContent: word })));
    }
  }

  function stage(root, trigger) {
    new Stage(root, trigger);
    window.studioModels.onEngine(({ sample_rate, channels }) =>
      player()
        .prepare(sample_rate, channels)
        .then(() => (document.documentElement.dataset.player = "ready"))
        .catch(() => toast("This browser cannot play sound while it is made. Takes still appear below.")),
    );
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && trigger("ended", {}));
  }

  function title(root, trigger) {
    root.addEventListener("change", ({ target }) => {
      if (!target.matches("[data-import]")) return;
      window.studioVoice.take(target.files[0], () => trigger("changed", {}));
      target.value = "";
    });
  }

  // What the reference desk says of a clip; a finding may offer the part that is better used.
  function findings(root, props, watch, trigger) {
    const render = () => (find(".findings", root).innerHTML = props.value?.html ?? "");
    watch("value", render);
    render();
    root.addEventListener("click", ({ target }) => {
      const { start, end } = target.closest("[data-end]")?.dataset ?? {};
      if (end !== undefined) trigger("trim", { start: Number(start), end: Number(end) });
    });
  }

  let clicked;
  const press = (event) => {
    clicked = event.timeStamp;
    if (event.target.closest?.("button")) dismiss(); // a new attempt, so the old message goes
    for (const menu of document.querySelectorAll(".downloads[open]")) {
      const within = menu.contains(event.target);
      // After the click has done its work: a link that is hidden under it downloads nothing.
      if (!within || event.target.closest("a")) setTimeout(() => menu.removeAttribute("open"));
    }
  };
  addEventListener("click", press, { capture: true });

  function speak(script, speed, seed) {
    const voice = find("#voices input[type=radio]:checked")?.value;
    if (!voice) return toast("Choose a voice first: pick a card, or make one from a clip.");
    const request = { script: script ?? "", voice, speed: Number(speed), seed: String(seed ?? "").trim() || null };
    player().speak({ ...request, engine: window.studioModels.engine }, clicked ?? performance.now());
  }

  const again = (take) => player().speak({ take, engine: window.studioModels.engine }, clicked ?? performance.now());

  // Ctrl or Cmd with Enter speaks from anywhere, Escape stops.
  addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      find("#speak")?.click();
    }
    if (event.key === "Escape" && !find("dialog[open]")) player()?.stop();
  });

  window.studioPage ??= { list, title, stage, speak, findings };
})();
