// The tree of a beam search, and the texts that it ranked.

let zoom = 1;
let isPrunedShown = true;

function showTree() {
  const best = new Set(pathTo(endOf(0, state.cursor)).map((node) => node.node));
  const items = [{ node: 0, parent: null, order: 0, label: lastWord(), share: null, state: "root", best: false, ahead: false, spoken: "The prompt" }];
  for (const node of nodes.values()) {
    if (node.fate === "pruned" && !isPrunedShown) continue;
    items.push(itemOf(node, best));
  }
  drawTree(find("tree-canvas"), "Tree of the search", items, pickedNode(), zoom, (node) => pick(node === 0 ? null : { kind: "node", node }));
  showRanking();
}

function itemOf(node, best) {
  const share = percent(node.final);
  return {
    node: node.node, parent: node.parent, order: node.group * 1000 + node.place, label: wordOf(node), share: node.final,
    state: node.fate, best: best.has(node.node), ahead: node.step >= state.cursor,
    spoken: `${wordOf(node)}, ${share}, score ${decimal(node.score)}, ${FATES[node.fate]}, step ${node.step + 1}`,
  };
}

function pickedNode() {
  if (state.picked?.kind === "node") return state.picked.node;
  return state.picked?.kind === "token" ? shownTokens()[state.picked.at]?.node ?? null : null;
}

function lastWord() {
  const text = run.prompt.map(([part]) => part).join("").trim();
  return text.split(/\s+/).at(-1) || "start";
}

function showRanking() {
  const lines = run.beams.ranking.map((item, place) => {
    const button = make("button", { type: "button", dir: "auto" }, item.text.trim() || "–");
    button.addEventListener("click", () => change({ text: place, cursor: lengthOf(), picked: null, playing: false }));
    return { kind: place === state.text ? "chosen" : "", cells: [button, decimal(item.score), whole(item.length)] };
  });
  find("ranking").replaceChildren(...(lines.length ? [table("", ["Texts, best first", "score", "tokens"], lines)] : []));
}

function startTree() {
  if (!run.beams) return;
  find("tree").hidden = false;
  const pruned = make("button", { type: "button", "aria-pressed": true }, "Pruned");
  pruned.addEventListener("click", () => {
    isPrunedShown = !isPrunedShown;
    pruned.setAttribute("aria-pressed", isPrunedShown);
    showTree();
  });
  find("tree-tools").append(pruned, zoomButton("−", "Smaller", 1 / 1.25), zoomButton("+", "Larger", 1.25));
  find("tree-key").append(...[["", "kept"], ["best", "★ leading"], ["finished", "ended"], ["pruned dashed", "pruned"]]
    .map(([kind, words]) => make("span", {}, make("i", { class: kind }), words)), make("span", {}, "width = probability"));
  watch((before) => {
    if (["cursor", "picked", "text"].some((name) => before[name] !== state[name])) showTree();
  });
}

function zoomButton(sign, name, factor) {
  const button = make("button", { type: "button", "aria-label": name }, sign);
  button.addEventListener("click", () => {
    zoom = Math.min(2.5, Math.max(0.3, zoom * factor));
    showTree();
  });
  return button;
}
