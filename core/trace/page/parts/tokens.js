// The tokens of the shown text: chosen one at a time, or the path of a search.

const nodes = new Map();
if (run.beams) {
  run.beams.steps.forEach((step, place) => step.nodes.forEach((node) => nodes.set(node.node, { ...node, step: place })));
}

const LIVE = ["kept", "finished", "early_stopped"];

function pathTo(node) {
  const path = [];
  for (let at = nodes.get(node); at; at = nodes.get(at.parent)) path.push(at);
  return path.reverse();
}

/** Return the number of cursor positions: tokens, or steps of a search. */
function lengthOf(text = state.text) {
  return run.beams ? run.beams.steps.length : run.texts[text].tokens.length;
}

/** Return the last node of a search's text; during the search the first text is that of the leading hypothesis. */
function endOf(text, cursor) {
  const atEnd = cursor >= lengthOf(text);
  const ranked = run.beams.ranking[text];
  if (text === 0 && !(atEnd && ranked)) return cursor > 0 ? run.beams.steps[cursor - 1].best : 0;
  return ranked ? ranked.node : 0;
}

/** Return every token of the shown text; those from `cursor` on are drawn faintly. */
function shownTokens() {
  return run.beams ? pathTo(endOf(state.text, state.cursor)) : run.texts[state.text].tokens;
}

function writtenCount() {
  const tokens = shownTokens();
  return Math.min(state.cursor, tokens.length);
}

/** Return one token per cursor position: in a search, the best continuation of every step. */
function track() {
  return run.beams ? run.beams.steps.map((step) => foremost(step.nodes)) : run.texts[state.text].tokens;
}

function foremost(candidates) {
  const live = candidates.filter((node) => LIVE.includes(node.fate));
  return (live.length ? live : candidates).reduce((best, node) => (node.normalized > best.normalized ? node : best));
}

function textCount() {
  return run.beams ? Math.max(1, run.beams.ranking.length) : run.texts.length;
}

function wordOf(token) {
  return run.words[token.word];
}

/** Return the token that the panel describes: the selected one, otherwise the newest while the text is replayed. */
function subject() {
  if (state.picked) return state.picked;
  const count = writtenCount();
  return state.cursor < lengthOf() && count > 0 ? { kind: "token", at: count - 1 } : null;
}

/** Return the number of a token: a branch continues the numbering of its parent. */
function numberOf(place) {
  return run.beginning.length + place + 1;
}

function spoken(token, place, count) {
  const word = wordOf(token).replace(/^␣/, "");
  return tr("Token {place} of {count}: “{word}”, probability {share}, rank {rank}",
    { place: numberOf(place), count: whole(run.beginning.length + count), word: word || wordOf(token), share: percent(token.raw), rank: whole(token.rank) });
}
