// What the invariance lab shows of each experiment: one sentence on what it means, its drawing, and the numbers behind it.
// Needs lab-words.js and lab-charts.js before it.

(() => {
  const { escape, whole, short, percent, table, heatMap, columns, rows, margins, trace, points } =
    window.studioLabCharts;
  const asked = { holds: "✓", differs: "≠", broken: "✗", "not checkable": "?" };
  const spelled = (count, word) => `${whole(count)} ${word}${count === 1 ? "" : "s"}`;

  function comparisons({ comparisons: all = [] }) {
    const sums = new Map();
    for (const { against, codes, differ } of all) {
      const [before, apart] = sums.get(against) ?? [0, 0];
      sums.set(against, [before + codes, apart + differ]);
    }
    return all.length
      ? table(
          ["against", "codes", "differ"],
          Array.from(sums, ([against, sum]) => [against, ...sum]),
        )
      : "";
  }

  // The heat map of one clip at a time, the one that differs most first.
  function soloBatch({ heat_maps: maps, by_codebook: books, by_clip: clips, by_batch: batches, published }) {
    const apart = ({ counts }) => counts.flat().reduce((sum, count) => sum + (count > 0), 0);
    const order = maps
      .map((map, index) => ({ map, index, apart: apart(map) }))
      .sort((one, other) => other.apart - one.apart);
    const options = order.map(
      ({ map, index, apart: many }) =>
        `<option value="${index}">${escape(map.clip)}: ${many} of ${map.counts.flat().length} codes${
          map.group === "boundary" ? ", made to lie where a last bit decides" : ""
        }</option>`,
    );
    const bars = books.map(({ codebook, codes, differ, rate }) => ({
      name: codebook,
      share: rate,
      said: differ ? percent(rate).replace(" %", "") : "0",
      title: `codebook ${codebook}: ${differ} of ${codes}`,
    }));
    const rest = [
      table(
        ["clip", "codes", "differ", "values it was given"],
        clips.map((clip) => [clip.clip, clip.codes, clip.differ, clip.values ?? null]),
        "Clip by clip",
      ),
      table(
        ["clips in a batch", "material", "codes", "differ"],
        batches.map((each) => [each.rows, each.group, each.codes, each.differ]),
        "By size of the batch",
      ),
    ];
    return (
      `<label class="pick">Clip<select data-map>${options.join("")}</select></label>` +
      `<div data-maps>${order.length ? heatMap(order[0].map) : ""}</div>` +
      `<h4>Mismatch by codebook</h4><p class="hint">The share of codes, in %, that came out otherwise. The first codebooks ` +
      `carry the most of the sound; once one flips, those after it in the frame follow.</p>` +
      columns(bars, `Share of codes that differ, for each of ${books.length} codebooks`, "codebook") +
      rest.join("") +
      `<p class="hint">Published: ${escape(published.what)}, ${percent(published.rate)} of codes.</p>`
    );
  }

  function traced({ modules, first, origin, clip, rows: many, frames }) {
    if (!modules) return "";
    const label = `Largest difference behind each of ${modules.length} modules; the first difference is in ${origin ?? first}`;
    const numbers = modules.map((each) => [
      each.module,
      each.kind,
      each.elements,
      each.differing,
      each.max_abs,
      each.mean_abs,
    ]);
    return (
      trace({ modules, first, origin }, label) +
      `<p class="hint">${escape(clip)}, ${spelled(frames, "frame")}, in a batch of ${many}.</p>` +
      table(["module", "kind", "numbers", "differ", "largest", "mean"], numbers)
    );
  }

  function flips({ bins, flips: found, roots, follow }) {
    if (!bins) return "";
    const flipped = bins.reduce((sum, bin) => sum + bin.flipped, 0);
    const numbers = bins
      .filter(({ codes }) => codes)
      .map((bin) => [short(bin.low), short(bin.high), bin.codes, bin.flipped]);
    return (
      margins(
        bins,
        `Codes that flipped by margin: ${flipped} in all, ${roots} first in their frame, ${follow} after them`,
      ) +
      table(["margin from", "to", "codes", "flipped"], numbers) +
      (found.length
        ? table(
            ["clip", "frame", "codebook", "margin", ""],
            found.map((each) => [
              each.clip,
              each.frame,
              each.codebook,
              each.margin,
              each.follows ? "follows" : "first in its frame",
            ]),
            "Codes that flipped",
          )
        : "")
    );
  }

  // Both decodes side by side, to be heard; the sounds lie with the studio.
  function audition({ clips, recogniser }) {
    const button = (sound, said, clip) =>
      sound
        ? `<button type="button" class="play" data-hear="${escape(sound)}" aria-pressed="false" aria-label="Play ${escape(clip)}, ` +
          `${said}"></button><span>${said}</span>`
        : "";
    const line = ({ clip, frames, codes, differ, snr_db, sounds, words_solo, words_batch }) =>
      `<li><div class="row"><b>${escape(clip)}</b><span class="figures">${spelled(frames, "frame")}, ${differ} of ${codes} ` +
      `codes differ</span></div><div class="row">${button(sounds.solo, "alone", clip)}${button(sounds.batch, "in a batch", clip)}` +
      `<span class="figures">${snr_db == null ? "equal to the last sample" : `${snr_db.toFixed(1)} dB apart`}</span></div>` +
      `${words_solo == null ? "" : `<p class="words">alone: “${escape(words_solo)}”<br>in a batch: “${escape(words_batch)}”</p>`}</li>`;
    const heard = recogniser
      ? ""
      : `<p class="hint">No recogniser is set up here, so nobody compares the words but you.</p>`;
    return `<ul class="audition">${clips.map(line).join("")}</ul>${heard}`;
  }

  function costs({ bars, audio_seconds }) {
    const names = { solo: "alone", lanes: "in lanes", batch: "in a batch" };
    const drawn = bars.map(({ name, seconds_a_clip: seconds }) => ({
      name: names[name] ?? name,
      value: seconds,
      said: `${short(1000 * seconds)} ms a clip`,
    }));
    const label = drawn.map(({ name, said }) => `${name} ${said}`).join(", ");
    const numbers = bars.map((bar) => [names[bar.name] ?? bar.name, bar.detail, bar.seconds, bar.seconds_a_clip]);
    return (
      rows(drawn, `Seconds for ${audio_seconds.toFixed(1)} s of sound: ${label}`) +
      table(["way", "how", "seconds", "a clip"], numbers)
    );
  }

  function settings({ rows: all }) {
    const share = (differ, codes) =>
      codes ? `${whole(differ)} of ${whole(codes)}${differ ? `, ${percent(differ / codes)}` : ""}` : "–";
    const line = (row) =>
      `<tr><th scope="row">${escape(row.dtype)}, ${spelled(row.threads, "thread")}</th><td>${share(row.differ, row.codes)}</td>` +
      `<td>${share(row.boundary_differ, row.boundary_codes)}</td></tr>`;
    return (
      `<div class="chart" tabindex="0" role="group" aria-label="Codes that differ in each setting"><table><thead><tr><th scope="col">` +
      `computed in</th><th scope="col">codes that differ</th><th scope="col">where a last bit decides</th></tr></thead><tbody>` +
      `${all.map(line).join("")}</tbody></table></div>`
    );
  }

  const gaps = ({ points: all }) =>
    points(
      all.map(({ gap_frames: x, rate: y }) => ({ x, y })),
      "Share of codes that differ beside longer and longer clips",
      "frames by which the neighbour is longer",
    ) +
    table(
      ["frames longer", "codes", "differ"],
      all.map((point) => [point.gap_frames, point.codes, point.differ]),
    );

  const pairs = ({ pairs: all }) => {
    const sums = {};
    for (const { one, other, codes, differ } of all) {
      const sum = (sums[`${one}, ${other}`] ??= [one, other, 0, 0]);
      sum[2] += codes;
      sum[3] += differ;
    }
    return table(["one", "other", "codes", "differ"], Object.values(sums));
  };

  const values = ({ clips }) =>
    clips
      ? table(
          ["clip", "asked", "values", "value"],
          clips.map(({ clip, requests, digests }) => [
            clip,
            requests,
            digests.length,
            digests.map((each) => each.slice(0, 12)).join(" "),
          ]),
        )
      : "";

  const tried = ({ covered, file }) =>
    (file ? `<p><a class="quiet-button" data-get="case" download>The smallest case, as a file</a></p>` : "") +
    table(
      ["computed in", "clips", "frames", "frames a row", "rows", "codes", "differ"],
      covered.map((each) => [
        `${each.dtype}, ${each.threads} thr.`,
        each.material,
        each.frames,
        each.row_frames ?? null,
        each.rows,
        each.codes,
        each.differ,
      ]),
      "All that was tried",
    );

  const saved = ({ rows: all = [] }) =>
    all.length
      ? table(
          ["voice", "codes", "differ", ""],
          all.map((each) => [
            each.name,
            each.codes,
            each.differing,
            each.damaged ? "damaged" : each.elsewhere.join("; ") || each.not_checkable,
          ]),
        )
      : "";

  const DRAWN = {
    "solo-batch": soloBatch,
    trace: traced,
    margins: flips,
    audible: audition,
    cost: costs,
    settings,
    lengths: gaps,
    rows: pairs,
    cache: values,
    search: tried,
    library: saved,
  };
  const WIDE = new Set(["solo-batch", "trace"]);

  // One record as a card; what has no figures is its sentence alone.
  function card({ experiment, question, figures, verdict, sentence, seconds }) {
    const some = Object.keys(figures).length > 0 && !(experiment === "audible" && !figures.clips);
    const draw = DRAWN[experiment] ?? comparisons;
    return (
      `<article class="finding" data-experiment="${escape(experiment)}" data-verdict="${escape(verdict)}"` +
      `${WIDE.has(experiment) ? " data-wide" : ""}><header><h3>${escape(question)}</h3><span class="verdict"><span aria-hidden="true">` +
      `${asked[verdict] ?? ""}</span> ${escape(verdict)}</span></header><p>${escape(sentence)}</p>` +
      `<p class="hint">${escape(window.studioLabWords.MEANINGS[experiment] ?? "")}</p>${some ? draw(figures) : ""}` +
      `<p class="figures">${escape(experiment)}, ${seconds.toFixed(1)} s</p></article>`
    );
  }

  window.studioLabFigures ??= { card, heatMap };
})();
