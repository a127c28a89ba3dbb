// The text: every token is underlined by its colouring and can be selected.

const COLOURINGS = {
  probability: [tr("Probability"), tr("unlikely"), tr("certain")],
  rank: [tr("Rank"), tr("low rank"), tr("first choice")],
  entropy: [tr("Entropy"), tr("uncertain"), tr("certain")],
  band: [tr("Rank in bands"), "", ""],
  second: [tr("Comparison model"), tr("differ"), tr("agree")],
  origin: [tr("Draft or model"), "", ""],
  none: [tr("None"), "", ""],
};
const BANDS = [10, 100, 1000];
const BAND_SCORES = [1, 0.62, 0.32, 0];
const SCORES = {
  probability: (token) => token.raw,
  rank: (token) => !token.rank ? null : Math.max(0, 1 - Math.log(Math.max(1, token.rank)) / Math.log(100)),
  entropy: (token) => (token.untold ? null : Math.exp(-token.entropy)),
  band: (token) => (token.rank ? BAND_SCORES[BANDS.filter((last) => token.rank > last).length] : null),
  second: (token) => (token.second ? 1 / (1 + Math.max(token.second.divergence, 0)) : 1),
};
let drawn = { tokens: null, spans: [] };

/** Return a colour between unlikely (0) and certain (1) in the current theme. */
function ramp(score) {
  if (score === null) return "var(--faint)";
  const at = Math.min(Math.max(score, 0), 1) * 4;
  const left = Math.min(Math.floor(at), 3);
  const share = Math.round((at - left) * 100);
  return `color-mix(in srgb, var(--ramp-${left + 1}) ${share}%, var(--ramp-${left}))`;
}

function showText(before) {
  const tokens = shownTokens();
  const same = drawn.tokens && tokens.length === drawn.tokens.length && tokens.every((token, place) => token === drawn.tokens[place]);
  if (!same) writeText(tokens);
  if (!same) hangSpaces();
  if (!same || before.colouring !== state.colouring) colourText();
  placeText(tokens.length);
}

function writeText(tokens) {
  const spans = tokens.map((token, place) => spanOf(token, place, tokens.length));
  drawn = { tokens, spans };
  find("tokens").replaceChildren(...spans);
  find("tokens").setAttribute("aria-label", trn("Generated text of {n} token", "Generated text of {n} tokens", tokens.length));
  find("tail").textContent = run.texts[state.text]?.tail ?? "";
}

function spanOf(token, place, count) {
  const shape = token.special ? "" : !token.text ? " unfinished" : /^\s*\n\s*$/.test(token.text) ? " line" : "";
  return make("span", {
    class: `token${shape}${token.thinking ? " thinking" : ""}`, role: "option", id: `token-${place}`, "aria-selected": false, "aria-label": spoken(token, place, count),
  }, ...written(token));
}

function written(token) {
  if (token.special) return [make("span", { class: "pill" }, wordOf(token).replace(/[⟨⟩]/g, ""))];
  const text = token.text.trimStart();
  const gap = token.text.slice(0, token.text.length - text.length);
  return /^ +$/.test(gap) && text ? [make("span", { class: "gap" }, gap), text] : [token.text];
}

/** A space at the end of a line has no underline: its token continues on the next line. */
function hangSpaces() {
  const gaps = [...find("tokens").querySelectorAll(".gap")];
  const range = document.createRange();
  const hung = gaps.map((gap) => {
    range.selectNode(gap.nextSibling);
    return range.getClientRects()[0].top > gap.getClientRects()[0].top + 4;
  });
  gaps.forEach((gap, place) => gap.classList.toggle("hung", hung[place]));
}

function colourText() {
  const score = SCORES[state.colouring];
  drawn.spans.forEach((span, place) => {
    const token = drawn.tokens[place];
    span.toggleAttribute("data-origin", false);
    span.toggleAttribute("data-forced", token.origin === "forced");
    if (state.colouring === "origin" && token.origin !== "forced") span.dataset.origin = token.origin ?? "target";
    const sure = score ? score(token) : 1;
    style(span, score ? { "--colour": ramp(sure), "--thick": `${(sure === null ? 2 : 2 + 3.5 * (1 - sure)).toFixed(1)}px` } : { "--colour": "", "--thick": "" });
  });
  showLegend();
}

const KEYS = {
  origin: [tr("drafted, accepted"), tr("corrected by the model"), tr("bonus"), tr("the model's own")],
  band: [tr("rank ≤ 10"), "≤ 100", "≤ 1,000", tr("more")],
};
const ORIGINS = ["draft", "correction", "bonus", "target"];

/** Create the sample underline of a legend entry. */
function swatch(place) {
  if (state.colouring === "band") return style(make("span", { class: "swatch" }), { background: ramp(BAND_SCORES[place]) });
  return make("span", { class: "token swatch", "data-origin": ORIGINS[place] });
}

function showLegend() {
  const [, low, high] = COLOURINGS[state.colouring];
  const key = KEYS[state.colouring] ? KEYS[state.colouring].map((label, place) => make("span", {}, swatch(place), label))
    : low ? [make("span", {}, low, make("span", { class: "ramp" }), high)] : [];
  const thinking = run.texts[state.text]?.thinking;
  if (drawn.tokens.some((token) => token.origin === "forced")) {
    key.push(make("span", {}, make("span", { class: "token swatch", "data-forced": "" }), tr("written by force")));
  }
  if (thinking) key.push(make("span", { class: "thinking" }, tr("thinking: {share}", { share: thinking })));
  find("legend").replaceChildren(...key, make("span", { class: "keys" },
    ...trAround("click a token, or {left} {right}", { left: make("kbd", {}, "←"), right: make("kbd", {}, "→") })));
}

function placeText(count) {
  const picked = state.picked?.kind === "token" ? state.picked.at : null;
  const written = run.beams ? count : writtenCount();
  const under = state.cursor < lengthOf();
  drawn.spans.forEach((span, place) => {
    span.classList.toggle("ahead", place >= written);
    span.classList.toggle("newest", under && picked === null && place === written - 1);
    const chosen = place === picked;
    if (chosen !== span.classList.contains("chosen")) {
      span.classList.toggle("chosen", chosen);
      span.setAttribute("aria-selected", chosen);
    }
  });
  find("tail").classList.toggle("ahead", under);
  if (picked === null) find("tokens").removeAttribute("aria-activedescendant");
  else find("tokens").setAttribute("aria-activedescendant", `token-${picked}`);
}

/** Select a token of the text; in a search, its node. */
function pickToken(at) {
  const place = Math.min(Math.max(at, 0), drawn.spans.length - 1);
  if (place < 0) return;
  pick({ kind: "token", at: place });
  drawn.spans[place].scrollIntoView({ block: "nearest" });
}

/** Return the token above or below: the nearest one in the next line. */
function besideLine(from, direction) {
  const box = drawn.spans[from].getBoundingClientRect();
  let best = null;
  for (let place = from + direction; place >= 0 && place < drawn.spans.length; place += direction) {
    const other = drawn.spans[place].getBoundingClientRect();
    const away = (other.top - box.top) * direction;
    if (away < box.height / 2) continue;
    if (best && (other.top - best.top) * direction > box.height / 2) break;
    const distance = Math.abs(other.left - box.left);
    if (!best || distance < best.distance) best = { place, distance, top: other.top };
  }
  return best ? best.place : from;
}

function onTextKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const at = state.picked?.kind === "token" ? state.picked.at : null;
  const last = drawn.spans.length - 1;
  const next = {
    ArrowRight: () => (at === null ? 0 : at + 1), ArrowLeft: () => (at === null ? last : at - 1),
    ArrowDown: () => (at === null ? 0 : besideLine(at, 1)), ArrowUp: () => (at === null ? last : besideLine(at, -1)),
    Home: () => 0, End: () => last, Enter: () => at ?? 0,
  }[event.key];
  if (!next) return;
  event.preventDefault();
  pickToken(next());
  if (event.key === "Enter") find("panel").focus();
}

function onTextClick(event) {
  const span = event.target.closest(".token");
  if (span && getSelection().isCollapsed) pickToken(drawn.spans.indexOf(span));
}

/** Show tokens that were not chosen: control tokens as pills, the others as text. */
function given(tokens) {
  return tokens.map(([text, , name]) => (name ? make("span", { class: "pill" }, name) : text));
}

function startText() {
  find("prompt").append(...given(run.prompt));
  find("beginning").append(...given(run.beginning));
  if (run.beginning.length) find("beginning").title = tr("The run continued after these tokens");
  if (run.prompt.at(-1)?.[2] && lengthOf() > 0) find("prompt").append("\n");
  find("tokens").addEventListener("keydown", onTextKey);
  find("tokens").addEventListener("click", onTextClick);
  new ResizeObserver(hangSpaces).observe(find("words"));
  watch(showText);
}
