// The dialog in which models are got, loaded and let go. Needs notices.js, voice.js and models.js before it.

(() => {
  const { element, ask } = window.studioNotices;
  const { request, post } = window.studioVoice;
  const models = window.studioModels;
  const { learn, percent, write } = models;
  const find = (selector, within) => within.querySelector(selector);
  const language = new Intl.DisplayNames(["en"], { type: "language" });
  const DOING = {
    download: "Downloading",
    folder: "Reading your folder",
    check: "Reading every file",
    load: "Loading",
  };

  const SHELL = `<dialog class="sheet models" aria-labelledby="models-title"><form method="dialog">
    <header><h2 id="models-title">Models</h2><button value="close" class="close" aria-label="Close">×</button></header>
    <p class="hint">One model speaks at a time, and it is loaded into memory for that. The embedded voice is always there.</p>
    <p class="notice" role="status"></p><ul></ul>
    <section class="hub"><label>Hub that models are downloaded from<input name="hub" spellcheck="false" inputmode="url"></label>
      <p class="hint">The public hub, or a mirror with the same paths.</p></section></form></dialog>`;

  const ROW = `<li><div class="row"><h3></h3><span class="mark" hidden>speaks now</span></div>
    <details class="languages"><summary></summary><p></p></details><dl></dl>
    <div class="job" hidden><p class="said"></p><progress max="1"></progress><ul class="files"></ul></div>
    <p class="aloud" role="status"></p>
    <div class="row acts">
      <button type="button" class="main" data-act="use"></button>
      <button type="button" class="main" data-act="download"></button>
      <button type="button" class="quiet-button" data-act="stop">Stop</button>
      <button type="button" class="quiet-button" data-act="unload">Unload</button>
      <button type="button" class="quiet-button" data-act="check">Check its files</button>
      <button type="button" class="quiet-button danger" data-act="remove"></button>
      <details class="own"><summary class="quiet-button">Use a folder</summary>
        <label>Path of the folder on this machine<input name="folder" spellcheck="false"></label><p class="hint"></p>
        <button type="button" class="quiet-button" data-act="folder">Read and use it</button></details></div></li>`;

  class Models {
    constructor() {
      this.root = element(SHELL);
      this.rows = new Map();
      this.view = (answer) => this.show(answer);
      this.root.addEventListener("click", ({ target }) => this.press(target.closest("[data-act]")));
      this.root.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" || !event.target.matches("input")) return;
        event.preventDefault();
        if (event.target.name === "folder") this.press(find("[data-act=folder]", event.target.closest("li")));
      });
      this.root.addEventListener("close", () => this.close());
    }

    async open() {
      if (models.watched) return;
      models.watched = true;
      models.viewers.add(this.view);
      document.body.append(this.root);
      this.root.showModal();
      if (models.sheet) this.show(models.sheet);
      await this.act("", () => request("/models"));
    }

    close() {
      models.viewers.delete(this.view);
      models.watched = false;
      this.root.remove();
    }

    say(sentence) {
      write(find(".notice", this.root), sentence);
    }

    show({ models: all, hub, here, coming }) {
      const address = find("[name=hub]", this.root);
      if (!this.rows.size) address.value = hub ?? "";
      find(".hub", this.root).hidden = !here;
      for (const model of all) {
        if (!this.rows.has(model.name)) {
          this.rows.set(model.name, element(ROW));
          find("ul", this.root).append(this.rows.get(model.name));
        }
        this.fill(this.rows.get(model.name), model, { here, coming });
      }
    }

    fill(row, model, { here, coming }) {
      const held = row.contains(document.activeElement) && document.activeElement;
      row.dataset.name = model.name;
      row.classList.toggle("chosen", model.loaded);
      find(".mark", row).hidden = !model.loaded;
      write(find("h3", row), model.title);
      const names = model.languages.map((code) => language.of(code));
      write(find("summary", row), names.length === 1 ? names[0] : `${names.length} languages`);
      write(find(".languages p", row), names.join(", "));
      find(".languages", row).classList.toggle("one", names.length === 1);
      this.facts(find("dl", row), model.facts);
      this.job(row, model);
      this.buttons(row, model, { here, coming });
      if (held && !held.checkVisibility()) (find(".acts button:not([hidden])", row) ?? find(".close", this.root)).focus();
    }

    facts(list, facts) {
      const wanted = JSON.stringify(facts);
      if (list.dataset.shown === wanted) return;
      list.dataset.shown = wanted;
      const node = (tag, textContent) => Object.assign(document.createElement(tag), { textContent });
      list.replaceChildren(...facts.flatMap(([term, value]) => [node("dt", term), node("dd", value)]));
    }

    // A bar for the whole, a line for each file, and for those who listen a word at every quarter.
    job(row, { title, job }) {
      const running = job?.state === "running";
      const files = running ? job.files : [];
      find(".job", row).hidden = !job || (!running && !job.said);
      row.dataset.job = job?.state ?? "";
      const doing = job && `${DOING[job.kind]}${job.share == null ? "…" : `, ${percent(job.share)}: ${job.figures}`}`;
      write(find(".said", row), (running ? doing : job?.said) ?? "");
      const bar = find("progress", row);
      bar.hidden = !running;
      bar.setAttribute("aria-label", job ? `${DOING[job.kind]} ${title}` : "");
      if (job?.share == null) bar.removeAttribute("value");
      else bar.value = job.share;
      const list = find(".files", row);
      while (list.children.length > files.length) list.lastChild.remove();
      files.forEach(({ name, share, figures }, index) => {
        const line = list.children[index] ?? list.appendChild(element("<li><span></span><span></span></li>"));
        write(line.firstChild, name.split("/").slice(-2).join("/"));
        write(line.lastChild, share === 1 ? `${figures.split(" of ")[1]}, done` : `${percent(share)}, ${figures}`);
      });
      const quarter = job?.share == null ? "" : `, ${25 * Math.floor(4 * job.share)} %`;
      write(find(".aloud", row), job ? (running ? `${DOING[job.kind]} ${title}${quarter}` : (job.said ?? "")) : "");
    }

    buttons(row, model, { here, coming }) {
      const { state, job, loaded, embedded } = model;
      const running = job?.state === "running";
      const rest = !running && !embedded;
      const shown = {
        use: !running && !loaded && state === "here",
        download: rest && state !== "here",
        stop: running && job.kind !== "load",
        unload: rest && loaded,
        check: rest && state === "here",
        remove: rest && !loaded && (state !== "absent" || model.borrowed),
      };
      for (const [act, wanted] of Object.entries(shown)) find(`[data-act=${act}]`, row).hidden = !wanted;
      find("[data-act=use]", row).disabled = Boolean(coming);
      write(find("[data-act=use]", row), embedded ? "Use this voice" : "Use this model");
      write(find("[data-act=download]", row), state === "partly" ? "Go on downloading" : `Download ${model.size}`);
      write(find("[data-act=remove]", row), model.borrowed ? "Forget the folder" : "Remove");
      const own = find(".own", row);
      own.hidden = !(rest && here && state !== "here");
      if (model.parts) {
        write(find("p", own), `It holds ${model.parts.join(" and ")}, each in a folder of that name. It is used where it lies.`);
      }
    }

    // What the studio answers is shown, what it refuses is said at the top.
    async act(sentence, work) {
      this.say(sentence);
      try {
        const answer = await learn(work());
        this.say(answer.said ?? "");
      } catch ({ message }) {
        this.say(message);
      }
    }

    async press(button) {
      if (!button) return;
      const row = button.closest("li");
      const { sheet } = models;
      const model = sheet.models.find(({ name }) => name === row.dataset.name);
      const to = (act, fields) => () => post(`/models/${model.name}/${act}`, fields);
      const hub = find("[name=hub]", this.root).value.trim();
      const speaking = sheet.models.find(({ loaded }) => loaded);
      const acts = {
        download: () => this.act("", to("download", hub && hub !== sheet.hub ? { hub } : {})),
        stop: () => this.act("Stopping…", to("stop")),
        check: () => this.act("", to("check")),
        folder: () => this.act("", to("folder", { folder: find("[name=folder]", row).value })),
        unload: () => this.act("Unloading…", to("unload")),
        use: () => this.act("", model.embedded ? () => post(`/models/${speaking.name}/unload`) : to("use")),
        remove: () => this.remove(model, to("remove")),
      };
      await acts[button.dataset.act]();
    }

    async remove({ title, borrowed, kept }, work) {
      const question = borrowed
        ? `Forget the folder of ${title}? The files in it stay as they are.`
        : `Remove ${title} from this machine? ${kept} are free again; to have it back it is downloaded anew.`;
      if (await ask(question, borrowed ? "Forget" : "Remove")) await this.act("Removing…", work);
    }
  }

  window.studioModelsDialog ??= { open: () => new Models().open() };
})();
