// The dialog of the invariance lab: what it proves, one click that proves it, what it has found. The runs and their
// results belong to the studio: the page asks, so that a reload loses nothing. Needs notices.js, voice.js, models.js,
// lab-words.js, lab-charts.js and lab-figures.js before it.

(() => {
  if (window.studioLab) return;
  const { element, toast } = window.studioNotices;
  const { request, post, audition, silence } = window.studioVoice;
  const { percent, write } = window.studioModels;
  const { escape } = window.studioLabCharts;
  const { card, heatMap } = window.studioLabFigures;
  const find = (selector, within) => within.querySelector(selector);
  const NEAR = 500; // milliseconds between two looks at a run with the dialog open, and with it closed
  const FAR = 2000;

  let sheet = null; // the latest answer
  let results = null; // what the studio has found, and which state of it
  let shown = ""; // which state of which setting the dialog shows
  let dialog = null;
  let button = null; // in the page's header
  let timer;

  async function learn(question) {
    const answer = await question;
    const before = sheet;
    sheet = answer;
    const { job } = sheet;
    if (button) write(button, job?.state === "running" ? `Invariance lab · ${percent(job.share)}` : "Invariance lab");
    if (before?.job?.state === "running" && job.state !== "running" && !dialog) {
      toast(`Invariance lab: ${job.said}`, job.state === "failed" ? "error" : "info");
    }
    if (dialog) await show();
    plan();
  }

  const refresh = () =>
    learn(request("/lab")).catch((error) => {
      plan();
      if (error.name !== "Error") throw error; // ours, not the studio's silence
    });

  function plan() {
    clearTimeout(timer);
    if (!sheet || sheet.job?.state === "running") timer = setTimeout(refresh, dialog ? NEAR : FAR);
  }

  async function open() {
    if (dialog) return;
    dialog = element(window.studioLabWords.SHELL);
    shown = "";
    dialog.addEventListener("click", ({ target }) => press(target));
    dialog.addEventListener("change", ({ target }) => pick(target));
    dialog.addEventListener("close", () => (silence(), dialog.remove(), (dialog = null)));
    document.body.append(dialog);
    dialog.showModal();
    await refresh();
  }

  async function show() {
    const { engine, experiments, voices, job } = sheet;
    const running = job?.state === "running";
    write(find(".engine", dialog), engine);
    choices(experiments, voices);
    for (const name of ["prove", "whole", "chosen"]) find(`[data-act=${name}]`, dialog).disabled = running;
    const stop = find("[data-act=stop]", dialog);
    if (!running && document.activeElement === stop) find("[data-act=prove]", dialog).focus();
    stop.hidden = !running;
    const long = "The proof takes up to a minute on two cores, everything some minutes.";
    write(find(".long", dialog), running ? "" : sheet.results ? "" : `Nothing has been run yet. ${long}`);
    progress(job, running);
    if (sheet.results && results?.state !== sheet.results) {
      results = { ...(await request("/lab/records")), state: sheet.results };
    }
    if (dialog && results && sheet.results) draw();
  }

  function choices(experiments, voices) {
    const list = find(".experiments", dialog);
    if (!list.children.length) {
      const tick = ({ name, question, on_request }) =>
        `<li><label class="tick"><input type="checkbox" name="experiment" value="${name}"${on_request ? "" : " checked"}>` +
        `<span>${escape(question)}</span></label></li>`;
      list.innerHTML = experiments.map(tick).join("");
    }
    const own = find(".voices", dialog);
    own.hidden = !voices.length;
    if (own.dataset.shown === JSON.stringify(voices)) return;
    own.dataset.shown = JSON.stringify(voices);
    const tick = ({ id, name }) =>
      `<li><label class="tick"><input type="checkbox" name="voice" value="${escape(id)}"><span dir="auto">${escape(name)}</span></label></li>`;
    find("ul", own).innerHTML = voices.map(tick).join("");
  }

  function progress(job, running) {
    const box = find(".job", dialog);
    box.hidden = !job;
    box.dataset.state = job?.state ?? "";
    if (!job) return;
    const bar = find("progress", box);
    bar.hidden = find(".doing", box).hidden = !running;
    bar.value = job.share;
    bar.setAttribute("aria-label", "Experiments done");
    const place = `Experiment ${job.number} of ${job.of}: ${job.question}`;
    write(find(".said", box), running ? (job.stopping ? "Stopping…" : place) : job.said);
    write(find(".doing", box), `${job.doing || "starting the process"}; ${Math.round(job.seconds)} s so far`);
    write(find(".aloud", dialog), running ? place : job.said);
  }

  // One setting at a time: those experiments that set what they need themselves belong to all of them.
  function draw() {
    const { headlines, experiments, environment, title, state } = results;
    const select = find("[data-setting]", dialog);
    const settings = headlines.map(({ dtype, threads }) => `${dtype}, ${threads} thread${threads > 1 ? "s" : ""}`);
    if (select.options.length !== settings.length) {
      const chosen = Math.max(select.selectedIndex, 0);
      select.replaceChildren(...settings.map((name, index) => new Option(name, index)));
      select.selectedIndex = chosen;
    }
    find(".setting", dialog).hidden = settings.length < 2;
    const index = Math.max(select.selectedIndex, 0);
    if (shown === `${state}/${index}`) return;
    shown = `${state}/${index}`;
    find(".results", dialog).hidden = false;
    find(".headline", dialog).innerHTML = headline(headlines[index], settings[index], title);
    const { dtype, threads } = headlines[index];
    const once = (name) => experiments.filter(({ experiment }) => experiment === name).length === 1;
    cards(
      experiments.filter(
        ({ experiment, setting }) => (setting.dtype === dtype && setting.threads === threads) || once(experiment),
      ),
    );
    const node = (tag, textContent) => Object.assign(document.createElement(tag), { textContent });
    const facts = Object.entries({ ...environment, clips: Object.keys(environment.clips).join(", ") });
    const pairs = facts.flatMap(([name, value]) => [
      node("dt", name.replaceAll("_", " ")),
      node("dd", value ?? "none"),
    ]);
    find(".place dl", dialog).replaceChildren(...pairs);
    for (const link of dialog.querySelectorAll("[data-get]")) {
      link.href = `${window.studioPlayer.root}/lab/report?as=${link.dataset.get}`;
    }
  }

  // Cards that are there already stay as they are, so that sounds, opened tables and the keyboard stay where they were.
  function cards(records) {
    const box = find(".found", dialog);
    const present = new Map(Array.from(box.children, (row) => [row.source, row]));
    const wanted = records.map((record) => {
      const source = JSON.stringify(record);
      return present.get(source) ?? Object.assign(element(card(record)), { source, record });
    });
    for (const row of present.values()) if (!wanted.includes(row)) row.remove();
    wanted.forEach((row, index) => box.children[index] !== row && box.insertBefore(row, box.children[index] ?? null));
    for (const flag of box.querySelectorAll(".flag")) {
      const chart = flag.closest(".chart");
      const place = flag.getBoundingClientRect().x - chart.getBoundingClientRect().x; // on a narrow page it may lie outside
      if (!chart.scrollLeft && place > chart.clientWidth) chart.scrollLeft = place - chart.clientWidth / 2;
    }
  }

  function headline({ solo, batched, note }, setting, title) {
    const part = (name, said) => (said ? `<div><dt>${name}</dt><dd>${escape(said)}</dd></div>` : "");
    return (
      `<dl>${part("alone", solo)}${part("in batches", batched)}</dl>` +
      `<p class="hint">${escape(note)} ${escape(title)}, ${escape(setting)}.</p>`
    );
  }

  function pick(target) {
    if (target.matches("[data-setting]")) draw();
    if (!target.matches("[data-map]")) return;
    const article = target.closest("article");
    find("[data-maps]", article).innerHTML = heatMap(article.record.figures.heat_maps[Number(target.value)]);
  }

  const ticked = (name) => Array.from(dialog.querySelectorAll(`[name=${name}]:checked`), ({ value }) => value);

  // What the studio answers is shown, what it refuses is said at the top.
  async function act(work) {
    write(find(".notice", dialog), "");
    await learn(work()).catch(({ message }) => dialog && write(find(".notice", dialog), message));
  }

  function press(target) {
    const sound = target.closest("[data-hear]");
    if (sound) audition(sound, `/lab/sounds/${encodeURIComponent(sound.dataset.hear)}`, toast);
    const name = target.closest("[data-act]")?.dataset.act;
    const start = (fields) => act(() => post("/lab/start", fields));
    const short = () => sheet.experiments.filter((each) => each.short).map((each) => each.name);
    const tick = (checked) => dialog.querySelectorAll("[name=experiment]").forEach((box) => (box.checked = checked));
    const settings = () => ({
      voices: ticked("voice"),
      quick: find("[name=quick]", dialog).checked,
      every_setting: find("[name=every]", dialog).checked,
    });
    const acts = {
      prove: () => start({ experiments: short(), quick: true }),
      whole: () => start({}),
      chosen: () => {
        const experiments = ticked("experiment");
        if (!experiments.length) return write(find(".notice", dialog), "Choose at least one experiment.");
        return start({ experiments, ...settings() });
      },
      stop: () => act(() => post("/lab/stop")),
      all: () => tick(true),
      none: () => tick(false),
    };
    if (name) acts[name]();
  }

  function header(root) {
    button = find("[data-lab]", root);
    button.addEventListener("click", open);
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && refresh());
    refresh();
  }

  window.studioLab = { header };
})();
