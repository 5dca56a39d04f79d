// The drawings of the invariance lab, as markup: plain SVG at its own size (what is too wide is scrolled), coloured by
// lab.css, and never by colour alone. Every one is told by its label and stands before a table with the same numbers.

(() => {
  const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  const escape = (text) => String(text).replace(/[&<>"]/g, (letter) => ESCAPES[letter]);
  const whole = (value) => value.toLocaleString("en");
  const short = (value) => {
    if (value === 0) return "0";
    return Math.abs(value) >= 0.001 && Math.abs(value) < 1000
      ? Number(value.toPrecision(3)).toString()
      : value.toExponential(1);
  };
  const percent = (rate) => `${rate > 0 && rate < 0.0005 ? (100 * rate).toPrecision(2) : (100 * rate).toFixed(1)} %`;

  const text = (x, y, words, kind = "", anchor = "start") =>
    `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" class="${kind}" text-anchor="${anchor}">${escape(words)}</text>`;
  const rect = (x, y, width, height, kind, title = "") =>
    `<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${width.toFixed(1)}" height="${height.toFixed(1)}" class="${kind}">` +
    `${title && `<title>${escape(title)}</title>`}</rect>`;
  const line = (x1, y1, x2, y2, kind) =>
    `<line x1="${x1.toFixed(1)}" y1="${y1.toFixed(1)}" x2="${x2.toFixed(1)}" y2="${y2.toFixed(1)}" class="${kind}"/>`;
  const svg = (width, height, label, inside) =>
    `<div class="chart" tabindex="0" role="group" aria-label="${escape(label)}"><svg width="${width}" height="${height}" ` +
    `viewBox="0 0 ${width} ${height}" role="img" aria-label="${escape(label)}">${inside}</svg></div>`;

  // Rows of plain values behind a chart; numbers stand to the right, null is a dash.
  function table(header, rows, summary = "The numbers") {
    const cell = (value) =>
      typeof value === "number"
        ? `<td class="number">${Number.isInteger(value) ? whole(value) : short(value)}</td>`
        : `<td>${escape(value ?? "–")}</td>`;
    const head = header.map((name) => `<th scope="col">${escape(name)}</th>`).join("");
    const body = rows.map((row) => `<tr>${row.map(cell).join("")}</tr>`).join("");
    return (
      `<details class="numbers"><summary>${escape(summary)}</summary><div class="chart" tabindex="0" role="group" ` +
      `aria-label="${escape(summary)}"><table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div></details>`
    );
  }

  // One square a code: a column a frame, a row a codebook; the number says in how many batches it came out otherwise.
  function heatMap({ counts, comparisons, clip }) {
    const [side, left, top] = [18, 30, 4];
    const frames = counts[0].length;
    const apart = counts.flat().filter(Boolean).length;
    let inside = "";
    counts.forEach((row, codebook) => {
      const y = top + codebook * side;
      inside += text(left - 6, y + 13, codebook, "axis", "end");
      row.forEach((count, frame) => {
        const x = left + frame * side;
        const title = `frame ${frame}, codebook ${codebook}: other than alone in ${count} of ${comparisons} batches`;
        const level = count ? ` apart level${Math.ceil((3 * count) / comparisons)}` : "";
        inside += rect(x + 0.5, y + 0.5, side - 1.5, side - 1.5, `cell${level}`, title);
        if (count) inside += text(x + side / 2 - 0.5, y + 13, count, "on", "middle");
      });
    });
    const bottom = top + counts.length * side;
    for (let frame = 0; frame < frames; frame += 5) inside += text(left + frame * side + 4, bottom + 14, frame, "axis");
    inside += text(left, bottom + 30, "frame; codebooks from top to bottom", "axis");
    const label = `Heat map of ${clip}: ${apart} of ${frames * counts.length} codes came out otherwise in a batch`;
    return svg(Math.max(left + frames * side + 6, 250), bottom + 36, label, inside);
  }

  // Upright bars from a common line, each with its share written over it.
  function columns(bars, label, across) {
    const [step, left, top, height] = [bars.length > 16 ? 30 : 44, 10, 18, 110];
    const highest = Math.max(...bars.map(({ share }) => share), 1e-9);
    let inside = line(left, top + height, left + bars.length * step, top + height, "base");
    bars.forEach(({ name, share, said, title }, place) => {
      const x = left + place * step;
      const tall = (height * share) / highest;
      if (share) inside += rect(x + 4, top + height - tall, step - 8, tall, "bar", title);
      inside += text(x + step / 2, top + height - tall - 4, said, "value", "middle");
      inside += text(x + step / 2, top + height + 14, name, "axis", "middle");
    });
    inside += text(left, top + height + 32, across, "axis");
    return svg(Math.max(left + bars.length * step + 6, 240), top + height + 40, label, inside);
  }

  // Lying bars: what each way takes.
  function rows(bars, label) {
    const [left, room, step] = [74, 130, 34];
    const longest = Math.max(...bars.map(({ value }) => value), 1e-9);
    const inside = bars.map(({ name, value, said }, place) => {
      const width = Math.max((room * value) / longest, 1);
      const y = place * step + 6;
      return (
        text(left - 8, y + 15, name, "axis", "end") +
        rect(left, y, width, 22, "bar") +
        text(left + width + 6, y + 15, said, "value")
      );
    });
    return svg(left + room + 96, bars.length * step + 8, label, inside.join(""));
  }

  // How much of each step of margin flipped, the smallest margins to the left.
  function margins(bins, label) {
    const [step, left, top, height] = [34, 44, 10, 110];
    let inside = line(left, top + height, left + bins.length * step, top + height, "base");
    for (const share of [0, 0.5, 1])
      inside += text(left - 6, top + height * (1 - share) + 4, `${100 * share} %`, "axis", "end");
    bins.forEach(({ low, high, codes, flipped }, place) => {
      const x = left + place * step;
      const tall = codes ? (height * flipped) / codes : 0;
      const title = `margin ${short(low)} to ${short(high)}: ${flipped} of ${codes} codes flipped`;
      if (flipped)
        inside += rect(x + 3, top + height - Math.max(tall, 2), step - 6, Math.max(tall, 2), "bar flipped", title);
      if (flipped) inside += text(x + step / 2, top + height - Math.max(tall, 2) - 3, flipped, "value", "middle");
      inside += text(x + step / 2, top + height + 14, codes, "count", "middle");
      if (place % 2 === 0) inside += text(x + 1, top + height + 30, low.toExponential(0), "axis");
    });
    inside += text(left, top + height + 47, "margin, the smallest to the left; over it the number of codes", "axis");
    return svg(Math.max(left + bins.length * step + 8, 400), top + height + 54, label, inside);
  }

  // The largest difference behind each module, on a scale of powers of ten; where nothing differs the curve lies below.
  function trace({ modules, first, origin }, label) {
    const [step, left, top, height, below] = [14, 58, 30, 130, 20];
    const powers = modules.filter(({ max_abs }) => max_abs > 0).map(({ max_abs }) => Math.log10(max_abs));
    const [lowest, highest] = [Math.floor(Math.min(...powers)), Math.ceil(Math.max(...powers) + 1e-9)];
    const span = Math.max(highest - lowest, 1);
    const level = (value) =>
      value > 0 ? top + height - ((Math.log10(value) - lowest) / span) * height : top + height + below;
    const place = (index) => left + 10 + index * step;
    const right = place(modules.length - 1) + 12;
    let inside = line(left, top + height + below, right, top + height + below, "base");
    inside += text(left - 6, top + height + below + 4, "equal", "axis", "end");
    for (let power = lowest; power <= highest; power += Math.max(1, Math.ceil(span / 4))) {
      inside += line(left, level(10 ** power), right, level(10 ** power), "grid");
      inside += text(left - 6, level(10 ** power) + 4, `1e${power}`, "axis", "end");
    }
    const points = modules.map(({ max_abs }, index) => `${place(index)},${level(max_abs).toFixed(1)}`);
    inside += `<polyline class="curve" points="${points.join(" ")}"/>`;
    modules.forEach(({ module, kind, max_abs, differing, elements }, index) => {
      const said = differing
        ? `${whole(differing)} of ${whole(elements)} numbers differ, at most ${short(max_abs)}`
        : "equal";
      inside +=
        `<circle class="point" cx="${place(index)}" cy="${level(max_abs).toFixed(1)}" r="3"><title>` +
        `${escape(`${module} (${kind}): ${said}`)}</title></circle>`;
    });
    const at = modules.findIndex(({ module }) => module === (origin ?? first));
    if (at >= 0) {
      const near = at < modules.length / 2;
      inside += line(place(at), top - 8, place(at), top + height + below, "mark");
      inside += `<path class="flag" d="M${place(at)} ${top - 10} l-6 -9 h12 z"/>`;
      inside += text(
        place(at) + (near ? 10 : -10),
        top - 12,
        `first difference: ${modules[at].module}`,
        "value",
        near ? "start" : "end",
      );
    }
    inside += text(left, top + height + below + 20, "modules of the encoder, in the order in which they work", "axis");
    return svg(Math.max(right + 6, 360), top + height + below + 28, label, inside);
  }

  // Values over a number, joined in their order.
  function points(values, label, across) {
    const [left, top, width, height] = [48, 14, 380, 110];
    const furthest = Math.max(...values.map(({ x }) => x), 1);
    const highest = Math.max(...values.map(({ y }) => y), 1e-9);
    const at = ({ x, y }) => [left + (width * x) / furthest, top + height - (height * y) / highest];
    let inside = line(left, top + height, left + width, top + height, "base");
    inside += `<polyline class="curve" points="${values
      .map((value) =>
        at(value)
          .map((n) => n.toFixed(1))
          .join(","),
      )
      .join(" ")}"/>`;
    for (const value of values) {
      const [x, y] = at(value);
      inside += `<circle class="point" cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="3"/>`;
      inside += text(x, top + height + 14, value.x, "axis", "middle");
    }
    inside +=
      text(left - 6, top + 4, percent(highest > 1e-9 ? highest : 0), "axis", "end") +
      text(left - 6, top + height + 4, "0", "axis", "end");
    inside += text(left, top + height + 32, across, "axis");
    return svg(left + width + 16, top + height + 40, label, inside);
  }

  window.studioLabCharts ??= { escape, whole, short, percent, table, heatMap, columns, rows, margins, trace, points };
})();
