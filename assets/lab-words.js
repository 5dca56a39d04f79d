// What the dialog of the invariance lab says: its markup, and one sentence on what each experiment means.

(() => {
  const SHELL = `<dialog class="sheet lab" aria-labelledby="lab-title"><form method="dialog">
    <header><h2 id="lab-title">Invariance lab</h2><button value="close" class="close" aria-label="Close">×</button></header>
    <section class="intro"><p>To clone a voice, the studio turns its clip into numbers, its <b>codes</b>, and keeps them. Many
      servers encode several clips at once to save time. Then the codes of your clip can depend on who else happened to be in
      the batch: a voice that changes by chance. This studio encodes every clip alone, so each has one value for ever.</p>
      <p class="hint">Here you can see both on this machine, with the voice model that is loaded: <b class="engine"></b>. It runs
      beside the studio and gives way to it, so you can go on speaking.</p></section>
    <p class="notice" role="status"></p>
    <div class="row acts"><button type="button" class="main" data-act="prove">Prove it</button>
      <button type="button" class="quiet-button" data-act="whole">Run everything</button>
      <button type="button" class="quiet-button" data-act="stop">Stop</button><span class="hint long"></span></div>
    <details class="choose"><summary>Choose experiments, clips and settings</summary>
      <div class="row"><button type="button" class="quiet-button" data-act="all">All</button>
        <button type="button" class="quiet-button" data-act="none">None</button></div>
      <ul class="experiments"></ul>
      <fieldset class="voices"><legend>Clips</legend><p class="hint">Those that come with the studio; or voices of yours:</p>
        <ul></ul></fieldset>
      <label class="tick"><input type="checkbox" name="quick">few clips, so that it is quick</label>
      <label class="tick"><input type="checkbox" name="every">in float32 and bfloat16, with 1 and 2 threads: four times as long</label>
      <button type="button" class="main" data-act="chosen">Run these</button></details>
    <div class="job" hidden><p class="said"></p><progress max="1"></progress><p class="hint doing"></p></div>
    <p class="aloud" role="status"></p>
    <section class="results" hidden><div class="row"><h3>What was found</h3>
      <label class="pick setting">computed in<select data-setting></select></label>
      <a class="quiet-button" data-get="html" download>Report</a><a class="quiet-button" data-get="json" download>JSON</a></div>
      <p class="hint">The report is one file that opens in any browser, offline. Attach it where you report this upstream.</p>
      <details class="words"><summary>What the verdicts mean</summary><p class="hint"><b>holds</b>: equal, or as promised.
        <b>differs</b>: batches of other shapes gave other codes, which they may. <b>broken</b>: what must be equal is not.
        <b>not checkable</b>: nothing can be said here, and the sentence says why.</p></details>
      <div class="headline"></div><div class="found"></div>
      <details class="place"><summary>Where this was measured</summary><dl></dl></details></section></form></dialog>`;

  const MEANINGS = {
    "repeat-solo": "The same clip, encoded alone again and again. Were this not 0, everything below would be chance.",
    "repeat-batch":
      "The same batch, again and again. Where a batch gives other codes, it always gives the same other ones.",
    history: "What was encoded a moment ago must leave no trace in the next clip.",
    "solo-batch":
      "A clip becomes a grid of numbers, its codes: one column for each twelfth of a second or so, one row a codebook. A " +
      "square with a number in it is a code that came out otherwise in that many batches than it does alone.",
    neighbour:
      "Only the other clip's sound changes, the batch keeps its size. Were this not 0, one clip would leak into another.",
    rows: "A batch of another size is other arithmetic, so any two of these may differ. It is the size that does it, not the neighbour.",
    lengths: "The clip next to yours, longer and longer. A batch of another length is other arithmetic, too.",
    padding:
      "Short clips are filled up to the longest one. What they are filled up with must not be heard by the codec.",
    trace:
      "The same clip through the encoder, alone and in a batch, step by step. At the marked step equal numbers go in and " +
      "other ones come out: the processor adds them up in another order, and the last digits change.",
    replay:
      "That one step by itself, given the very same numbers. If it shows the same, the rest of the network is not to blame.",
    margins:
      "A code is the nearest of many entries. Where two are almost equally near (a small margin), a change in the last digit " +
      "decides; so the codes that flip should stand on the left.",
    audible:
      "Listen yourself: the codes of the clip alone, and those it got in a batch. The figure in dB says how close the two " +
      "sounds are; more is closer, and 20 dB is one part in ten.",
    settings:
      "The same question with other ways of computing. Where the figure is 0, that way hides the effect with these clips.",
    search:
      "Many shapes of batch, tried one by one. The smallest that shows the effect is kept as a file that anybody can run.",
    cost: "Encoding alone is what the cache pays, once for each clip. Lanes are several clips at the same time, each alone.",
    cache:
      "The same clips are asked for at random, several at once, with restarts in between. Each must always get one value.",
    sampling: "Chance in a take comes from its seed alone. Who else speaks, and who began first, must not change it.",
    slots: "A take made beside others must be the take that is made alone, to the last sample.",
    chunks: "What you hear while it is made must be what is saved, however it is cut into pieces.",
    library:
      "Your saved voices, encoded again and compared; nothing is changed. Codes made on another machine may differ.",
  };

  window.studioLabWords ??= { SHELL, MEANINGS };
})();
