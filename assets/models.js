// Which voice model speaks. The studio knows everything: the page asks it, more often while something is under way, so that
// a reload loses nothing. Needs notices.js and voice.js before it; models-dialog.js comes after.

(() => {
  if (window.studioModels) return;
  const { toast } = window.studioNotices;
  const { request } = window.studioVoice;
  const find = (selector, within) => within.querySelector(selector);
  const NEAR = 400; // milliseconds between two looks at work under way with the dialog open, and with it closed
  const FAR = 1500;

  let sheet = null; // the latest answer
  let asked = 0; // numbers the questions, so that a late answer does not undo a later one
  let accepted = 0;
  let timer;
  const viewers = new Set();
  const engines = new Set();

  async function learn(question) {
    const number = ++asked;
    const answer = await question;
    if (number < accepted) return answer;
    accepted = number;
    const before = sheet;
    sheet = answer;
    for (const view of viewers) view(sheet, before);
    if (before?.engine.name !== sheet.engine.name) for (const hear of engines) hear(sheet.engine);
    if (!models.watched) announce(before);
    plan();
    return answer;
  }

  const refresh = () =>
    learn(request("/models")).catch((error) => {
      plan();
      if (error.name !== "Error") throw error; // ours, not the studio's silence
    });

  function plan() {
    clearTimeout(timer);
    const busy = sheet?.coming || sheet?.models.some(({ job }) => job?.state === "running");
    if (busy || !sheet) timer = setTimeout(refresh, models.watched ? NEAR : FAR);
  }

  // What ended while nobody looked.
  function announce(before) {
    for (const { name, job } of sheet.models) {
      const earlier = before?.models.find((model) => model.name === name)?.job;
      if (earlier?.state === "running" && job && job.state !== "running") {
        toast(job.said, job.state === "done" ? "info" : "error");
      }
    }
  }

  // Calls back with the engine that speaks: now, and whenever it is another one.
  function onEngine(hear) {
    engines.add(hear);
    if (sheet) hear(sheet.engine);
  }

  const percent = (share) => `${Math.floor(100 * share)} %`;
  const write = (node, text) => node.textContent !== text && (node.textContent = text);

  function header(root, trigger) {
    const show = ({ engine, coming, models }, before) => {
      write(find(".where", root), coming ? `loading: ${coming}` : `${engine.title} on ${engine.device}, ${engine.sound}`);
      const moving = models.find(({ job }) => job?.state === "running" && job.share != null);
      write(find("[data-models]", root), moving ? `Models · ${percent(moving.job.share)}` : "Models");
      if (before && before.engine.name !== engine.name) trigger("changed", {});
    };
    viewers.add(show);
    find("[data-models]", root).addEventListener("click", () => window.studioModelsDialog.open());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && refresh());
    if (sheet) show(sheet);
  }

  const models = {
    header,
    onEngine,
    refresh,
    learn,
    viewers,
    percent,
    write,
    watched: false, // whether the dialog is open
    get engine() {
      return sheet?.engine.name;
    },
    get sheet() {
      return sheet;
    },
  };
  window.studioModels = models;
  refresh();
})();
