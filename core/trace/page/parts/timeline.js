// The timeline: replay the run from its first to its last token, or drag the cursor.

const MEASURES = { surprise: tr("Surprise"), entropy: tr("Entropy"), probability: tr("Probability") };
const SPEEDS = { 0.5: "0.5×", 1: "1×", 2: "2×", 4: "4×" };
const TOKENS_A_SECOND = 8;
const CEILING = 12;
let timer = 0;
let trackWidth = 0;

/** Return the height of a bar: the square root of bits on a fixed scale; probabilities unchanged. */
function heightOf(token) {
  if (token.untold && (state.measure === "entropy" || token.raw === null)) return 0;
  if (state.measure === "probability") return token.raw;
  const value = state.measure === "surprise" ? bits(token.log) : token.entropy / Math.LN2;
  return Math.sqrt(Math.min(Math.max(value, 0), CEILING) / CEILING);
}

function showTimeline(before) {
  const length = lengthOf();
  find("place").max = length;
  find("place").value = state.cursor;
  const at = track()[state.cursor - 1];
  find("place").setAttribute("aria-valuetext", tr("{place} of {count}", { place: numberOf(state.cursor - 1), count: numberOf(length - 1) }) + (at ? `: ${wordOf(at)}` : ""));
  find("count").textContent = `${whole(numberOf(state.cursor - 1))} / ${whole(numberOf(length - 1))}`;
  showPlay();
  showColumns();
  if (before.playing !== state.playing || before.speed !== state.speed) keepTime();
}

function showPlay() {
  const path = state.playing ? "M3 2h4v12H3zM9 2h4v12H9z" : "M3 1.5 14 8 3 14.5z";
  find("play").replaceChildren(draw("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, draw("path", { d: path })));
  find("play").setAttribute("aria-label", state.playing ? tr("Pause") : tr("Play"));
}

/** Draw all bars as two shapes; if there are more bars than pixels, neighbours share the tallest. */
function showColumns() {
  const tokens = track();
  const width = trackWidth;
  const groups = Math.min(tokens.length, Math.max(1, Math.floor(width / 3)));
  const step = width / Math.max(1, groups);
  let [played, ahead] = ["", ""];
  for (let group = 0; group < groups; group += 1) {
    const [from, to] = [Math.floor(tokens.length * group / groups), Math.floor(tokens.length * (group + 1) / groups)];
    const high = Math.max(1.5, Math.max(...tokens.slice(from, to).map(heightOf)) * 44);
    const bar = `M${(group * step).toFixed(2)} 48v${(-high).toFixed(1)}h${Math.max(1, step - Math.min(3, step * 0.3)).toFixed(2)}v${high.toFixed(1)}z`;
    if (from < state.cursor) played += bar;
    else ahead += bar;
  }
  const x = tokens.length ? (state.cursor / tokens.length) * width : 0;
  find("columns-of-time").replaceChildren(draw("path", { class: "ahead", d: ahead }), draw("path", { class: "played", d: played }),
    draw("rect", { class: "place", x: Math.max(0, x - 1), y: 0, width: 2, height: 48 }));
}

function keepTime() {
  clearInterval(timer);
  if (state.playing) timer = setInterval(tick, 1000 / (TOKENS_A_SECOND * state.speed));
}

function tick() {
  if (state.cursor >= lengthOf()) change({ playing: false });
  else change({ cursor: state.cursor + 1, playing: state.cursor + 1 < lengthOf() });
}

function playOrPause() {
  const atEnd = state.cursor >= lengthOf();
  change({ playing: !state.playing, picked: null, cursor: !state.playing && atEnd ? 0 : state.cursor });
}

function startTimeline() {
  options(find("measure"), MEASURES);
  options(find("speed"), SPEEDS);
  find("speed").value = "1";
  find("place").setAttribute("aria-label", run.beams ? tr("Step of the search") : tr("Position in the text"));
  find("play").addEventListener("click", playOrPause);
  find("place").addEventListener("input", (event) => change({ cursor: Number(event.target.value), picked: null, playing: false }));
  find("measure").addEventListener("change", (event) => change({ measure: event.target.value }));
  find("speed").addEventListener("change", (event) => change({ speed: Number(event.target.value) }));
  new ResizeObserver(([{ contentRect }]) => {
    trackWidth = contentRect.width;
    showColumns();
  }).observe(find("track"));
  watch(showTimeline);
}
