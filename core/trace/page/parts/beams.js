// The tree of a beam search and its ranked texts.

let zoom = 1;
const MOST_WITH_PRUNED = 60;
let isPrunedShown = nodes.size <= MOST_WITH_PRUNED;
let searchTree = null;

/** Draw the tree again after its visible nodes or its size have changed. */
function redrawTree() {
  const shown = [...nodes.values()].filter((node) => isPrunedShown || node.fate !== "pruned");
  const root = { node: 0, parent: null, order: 0, label: lastWord(), share: null, state: "root", spoken: tr("The prompt"), step: -1 };
  searchTree = drawTree(find("tree-canvas"), tr("Tree of the search"), [root, ...shown.map(itemOf)], zoom,
    (node) => pick(node === 0 ? null : { kind: "node", node }));
  markSearch();
}

function markSearch() {
  const best = new Set(pathTo(endOf(0, state.cursor)).map((node) => node.node));
  markTree(searchTree, best, (item) => item.step >= state.cursor, pickedNode());
}

function itemOf(node) {
  const share = percent(node.final);
  return {
    node: node.node, parent: node.parent, order: node.group * 1000 + node.place, label: wordOf(node), share: node.final,
    state: node.fate, step: node.step,
    spoken: tr("{word}, {share}, score {score}, {fate}, step {step}",
      { word: wordOf(node), share, score: decimal(node.score), fate: FATES[node.fate], step: node.step + 1 }),
  };
}

function pickedNode() {
  if (state.picked?.kind === "node") return state.picked.node;
  return state.picked?.kind === "token" ? shownTokens()[state.picked.at]?.node ?? null : null;
}

function lastWord() {
  const text = run.prompt.map(([part]) => part).join("").trim();
  return text.split(/\s+/).at(-1) || tr("start");
}

function showRanking() {
  const lines = run.beams.ranking.map((item, place) => {
    const button = make("button", { type: "button", dir: "auto" }, item.text.trim() || "–");
    button.addEventListener("click", () => change({ text: place, cursor: lengthOf(), picked: null, playing: false }));
    return { kind: place === state.text ? "chosen" : "", cells: [button, decimal(item.score), whole(item.length)] };
  });
  find("ranking").replaceChildren(...(lines.length ? [table("", [tr("Texts, best first"), tr("score"), tr("tokens")], lines)] : []));
}

function startTree() {
  if (!run.beams) return;
  find("tree").hidden = false;
  const pruned = make("button", { type: "button", "aria-pressed": isPrunedShown }, tr("Show pruned"));
  pruned.addEventListener("click", () => {
    isPrunedShown = !isPrunedShown;
    pruned.setAttribute("aria-pressed", isPrunedShown);
    redrawTree();
  });
  find("tree-tools").append(pruned, zoomButton("−", tr("Smaller"), 1 / 1.25), zoomButton("+", tr("Larger"), 1.25));
  find("tree-key").append(...[["", tr("kept")], ["best", tr("★ leading")], ["finished", tr("finished")], ["pruned dashed", tr("pruned")]]
    .map(([kind, words]) => make("span", {}, make("i", { class: kind }), words)), make("span", {}, tr("width = probability")));
  watch((before) => {
    if (!searchTree) redrawTree();
    else if (["cursor", "picked", "text"].some((name) => before[name] !== state[name])) markSearch();
    if (before.text !== state.text || !find("ranking").hasChildNodes()) showRanking();
  });
}

function zoomButton(sign, name, factor) {
  const button = make("button", { type: "button", "aria-label": name }, sign);
  button.addEventListener("click", () => {
    zoom = Math.min(2.5, Math.max(0.3, zoom * factor));
    redrawTree();
  });
  return button;
}
