// The dialog of one voice: what its owner says about it, its clips with their trims, and what is known of its codes.
// Everything it shows and changes goes through the studio's own routes. Needs notices.js and player.js before it.

(() => {
  const { element, toast, ask } = window.studioNotices;
  const find = (selector, within) => within.querySelector(selector);
  const address = (path) => window.studioPlayer.root + path;
  const FIELDS = ["name", "transcript", "notes", "language", "consent"];

  const SHELL = `<dialog class="sheet" aria-labelledby="sheet-title"><form method="dialog">
    <header><h2 id="sheet-title" dir="auto"></h2><button value="close" class="close" aria-label="Close">×</button></header>
    <p class="notice" role="status"></p>
    <div class="columns"><fieldset><legend>About this voice</legend>
      <label>Name<input name="name" maxlength="255" dir="auto"></label>
      <div class="pair"><label>Language<input name="language" maxlength="64" placeholder="English"></label>
        <label class="colour">Colour<input type="color" name="colour"></label></div>
      <label>Tags, with commas between<input name="tags" dir="auto" placeholder="calm, narrator"></label>
      <label>What is said in the reference<textarea name="transcript" rows="2" dir="auto"></textarea></label>
      <p class="doubt">The clip was trimmed after this was written. Shorten the words to what is left, and save.</p>
      <label>Whose voice it is, and that they agreed<input name="consent" dir="auto" maxlength="2000"></label>
      <label>Notes<textarea name="notes" rows="2" dir="auto"></textarea></label>
      <button type="button" class="main" data-act="save">Save</button></fieldset>
    <div><section class="clips"><h3>Clips</h3><ul></ul>
      <label class="quiet-button file">Add a clip<input type="file" accept="audio/*,video/webm,.wav,.flac,.ogg,.mp3,.m4a"></label>
    </section>
    <section class="kept"><h3>Codes</h3><dl></dl><div class="row">
      <button type="button" class="quiet-button" data-act="verify">Check them now</button>
      <button type="button" class="quiet-button" data-act="refill">Encode again</button></div></section></div></div>
    <footer><button type="button" class="quiet-button" data-act="duplicate">Duplicate</button>
      <a class="quiet-button" data-export download>Export</a>
      <button type="button" class="quiet-button danger" data-act="remove">Remove</button></footer>
    </form></dialog>`;

  const CLIP = `<li><div class="row"><button type="button" class="play" data-act="hear" aria-pressed="false"></button>
      <span class="name" dir="auto"></span><span class="figures"></span></div>
    <div class="row trim"><label>from<input type="number" min="0" step="0.01" name="start"></label>
      <label>to<input type="number" min="0" step="0.01" name="end"></label><span>s</span>
      <button type="button" class="quiet-button" data-act="trim">Trim</button>
      <button type="button" class="quiet-button" data-act="choose">Use as reference</button>
      <button type="button" class="quiet-button danger" data-act="drop">Remove</button></div></li>`;

  // One question to the studio; a refusal becomes its sentence.
  async function request(path, body, type = "application/json") {
    const options = body === undefined ? {} : { method: "POST", body, headers: { "Content-Type": type } };
    const answer = await fetch(address(path), options).catch(() => null);
    const content = await answer?.json().catch(() => null);
    if (!answer) throw new Error("The studio does not answer. Is its terminal still open?");
    if (!answer.ok) throw new Error(content?.error ?? `The studio answered ${answer.status}.`);
    return content;
  }
  const post = (path, fields = {}) => request(path, JSON.stringify(fields));

  // One clip at a time on the whole page; the button that started it stops it.
  const sound = new Audio();
  let playing = null;
  function audition(button, path, complain) {
    const again = playing === button;
    silence();
    if (again) return;
    playing = button;
    button.setAttribute("aria-pressed", "true");
    sound.src = address(path);
    sound.play().catch(() => {
      silence();
      complain("This browser cannot play the clip. The voice itself works.");
    });
  }
  function silence() {
    sound.pause();
    playing?.setAttribute("aria-pressed", "false");
    playing = null;
  }
  sound.addEventListener("ended", silence);

  class Sheet {
    constructor(id, changed) {
      this.path = `/voices/${encodeURIComponent(id)}`;
      this.changed = changed;
      this.root = element(SHELL);
      this.root.addEventListener("click", ({ target }) => this.press(target.closest("[data-act]")));
      this.root.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && event.target.matches("input")) event.preventDefault();
      });
      find("input[type=file]", this.root).addEventListener("change", ({ target }) => this.addClip(target));
      this.root.addEventListener("close", () => (silence(), this.root.remove()));
    }

    async open() {
      try {
        this.show(await request(this.path));
      } catch (error) {
        return toast(error.message);
      }
      document.body.append(this.root);
      this.root.showModal();
    }

    show(voice) {
      this.voice = voice;
      this.root.style.setProperty("--mark", voice.colour);
      find("#sheet-title", this.root).textContent = voice.name;
      for (const name of FIELDS) find(`[name=${name}]`, this.root).value = voice[name];
      find("[name=tags]", this.root).value = voice.tags.join(", ");
      find("[name=colour]", this.root).value = voice.colour;
      for (const name of ["name", "transcript"]) find(`[name=${name}]`, this.root).readOnly = voice.builtin;
      find(".doubt", this.root).hidden = !voice.transcript_unchecked;
      find("[data-act=remove]", this.root).hidden = find(".file", this.root).hidden = voice.builtin;
      find("[data-export]", this.root).href = address(`${this.path}/export`);
      find(".clips ul", this.root).replaceChildren(...voice.clips.map((clip) => this.clip(clip)));
      const facts = voice.facts.flatMap(([term, value]) => [element("<dt></dt>"), element("<dd></dd>")].map(
        (node, index) => Object.assign(node, { textContent: index ? value : term })));
      find(".kept dl", this.root).replaceChildren(...facts);
    }

    clip(clip) {
      const row = element(CLIP);
      row.dataset.id = clip.id;
      find(".name", row).textContent = clip.name || "the clip";
      find(".figures", row).textContent = clip.about;
      find(".play", row).setAttribute("aria-label", `Play ${clip.name || "the clip"}`);
      [find("[name=start]", row).value, find("[name=end]", row).value] = clip.trim ?? ["", ""];
      find("[data-act=choose]", row).hidden = find("[data-act=drop]", row).hidden = clip.is_reference;
      find(".trim", row).hidden = this.voice.builtin;
      row.classList.toggle("chosen", clip.is_reference);
      return row;
    }

    say(sentence) {
      find(".notice", this.root).textContent = sentence;
    }

    // One act at a time; what it answers is shown, what it refuses is said above the form.
    async act(sentence, work) {
      if (this.busy) return;
      this.busy = true;
      this.root.dataset.busy = "true";
      this.say(sentence);
      try {
        const answer = await work();
        this.say(answer.said ?? "");
        if (answer.voice) this.show(answer.voice);
        this.changed();
        return answer;
      } catch (error) {
        this.say(error.message);
      } finally {
        this.busy = false;
        delete this.root.dataset.busy;
      }
    }

    async press(button) {
      if (!button) return;
      const row = button.closest("li");
      const clip = row && `${this.path}/clips/${row.dataset.id}`;
      const acts = {
        save: () => this.act("Saving…", () => post(this.path, this.fields())),
        verify: () => this.act("Encoding once more, to compare…", () => post(`${this.path}/verify`)),
        refill: () => this.refill(),
        duplicate: () => this.act("Copying…", () => post(`${this.path}/duplicate`)),
        remove: () => this.remove(),
        hear: () => audition(button, `${clip}/audio`, (sentence) => this.say(sentence)),
        choose: () => this.act("Choosing…", () => post(`${clip}/choose`)),
        drop: () => this.act("Removing…", () => post(`${clip}/remove`)),
        trim: () => this.act("Trimming…", () => post(`${clip}/trim`, { trim: this.trim(row) })),
      };
      await acts[button.dataset.act]();
    }

    fields() {
      const value = (name) => find(`[name=${name}]`, this.root).value;
      const known = this.voice.builtin ? FIELDS.filter((name) => !["name", "transcript"].includes(name)) : FIELDS;
      const changes = Object.fromEntries(known.map((name) => [name, value(name)]).filter(([name, text]) => text !== this.voice[name]));
      if (this.voice.transcript_unchecked) changes.transcript = value("transcript");
      if (value("colour") !== this.voice.colour) changes.colour = value("colour");
      return { ...changes, tags: value("tags").split(",").map((tag) => tag.trim()).filter(Boolean) };
    }

    trim(row) {
      const [start, end] = [find("[name=start]", row).value, find("[name=end]", row).value];
      return start === "" && end === "" ? null : [Number(start || 0), end === "" ? 1e6 : Number(end)];
    }

    async refill() {
      const question = "Encode this voice again? Where the codes come out otherwise, the voice changes from now on; takes keep theirs.";
      if (await ask(question, "Encode again")) await this.act("Encoding…", () => post(`${this.path}/refill`));
    }

    async remove() {
      const question = `Remove the voice “${this.voice.name}” with its clips? Takes made with it stay.`;
      if (!(await ask(question))) return;
      if (await this.act("Removing…", () => post(`${this.path}/remove`))) this.root.close();
    }

    async addClip(input) {
      const [file] = input.files;
      input.value = "";
      if (!file) return;
      const path = `${this.path}/clips?name=${encodeURIComponent(file.name)}`;
      await this.act("Listening to the clip…", () => request(path, file, "application/octet-stream"));
    }
  }

  const open = (id, changed) => new Sheet(id, changed).open();

  // A bundle that somebody chose becomes a voice here.
  async function take(file, changed) {
    if (!file) return;
    try {
      const { said } = await request("/bundles", file, "application/zip");
      toast(said, "info");
      changed();
    } catch (error) {
      toast(error.message);
    }
  }

  window.studioVoice ??= { open, take, request, post, audition, silence };
})();
