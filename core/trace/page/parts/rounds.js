// Rounds of speculative decoding: one bar per round, and the tree of the selected round.

let shownRound = 0;
let roundTree = { number: -1, tree: null };

function rounds() {
  return run.rounds;
}

function roundOf(token) {
  return rounds().findLastIndex((round) => round.step <= token);
}

function startRounds() {
  if (!rounds().length) return;
  find("rounds").hidden = false;
  const accepted = rounds().reduce((sum, round) => sum + round.accepted.length, 0);
  const drafted = rounds().reduce((sum, round) => sum + round.nodes.length, 0);
  find("rounds-sum").textContent = [trn("{n} round", "{n} rounds", rounds().length),
    tr("{accepted} of {drafted} accepted", { accepted: whole(accepted), drafted: trn("{n} drafted token", "{n} drafted tokens", drafted) })].join(" · ");
  find("strip").append(...rounds().map(pileOf));
  find("strip").setAttribute("aria-label", tr("Rounds of speculation"));
  find("strip").addEventListener("click", (event) => {
    const pile = event.target.closest(".round");
    if (pile) pickRound(Number(pile.dataset.round));
  });
  find("strip").addEventListener("keydown", onStripKey);
  find("round-key").append(...[["", DRAFTED.accepted], ["refused dashed", DRAFTED.refused], ["unreached dashed", DRAFTED.unreached], ["bonus", DRAFTED.bonus], ["correction", DRAFTED.correction]]
    .map(([kind, words]) => make("span", {}, make("i", { class: kind }), words)));
  watch((before) => {
    follow(before);
    showRound();
  });
}

function pileOf(round, number) {
  const bricks = round.nodes.filter((node) => node.fate === "accepted").map(() => "accepted");
  if (round.extra !== "none") bricks.push(round.extra);
  const others = round.nodes.filter((node) => node.fate !== "accepted").map((node) => node.fate);
  return make("div", { class: "round", role: "option", id: `round-${number}`, "data-round": number, "aria-selected": false,
    "aria-label": tr("Round {round}: {why}", { round: number + 1, why: round.why.join("") }) },
  make("div", { class: "pile" }, [...bricks, ...others].slice(0, 12).map((kind) => make("i", { class: kind }))), `${number + 1}`);
}

function pickRound(number) {
  const round = Math.min(Math.max(number, 0), rounds().length - 1);
  const first = rounds()[round].nodes[0];
  pick({ kind: "draft", round, node: first ? first.node : -1 });
}

function onStripKey(event) {
  const step = { ArrowRight: shownRound + 1, ArrowLeft: shownRound - 1, Home: 0, End: rounds().length - 1 }[event.key];
  if (event.key === "Enter") find("panel").focus();
  if (step === undefined || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  pickRound(step);
}

/** Show the round of the selected node, or of the cursor if it has moved. */
function follow(before) {
  if (state.picked?.kind === "draft") shownRound = state.picked.round;
  else if (state.picked?.kind === "token") shownRound = Math.max(0, roundOf(state.picked.at));
  else if (before.cursor !== state.cursor) shownRound = Math.max(0, roundOf(state.cursor - 1));
}

function showRound() {
  const round = rounds()[shownRound];
  for (const pile of find("strip").children) {
    const number = Number(pile.dataset.round);
    pile.classList.toggle("chosen", number === shownRound);
    pile.classList.toggle("ahead", rounds()[number].step >= state.cursor);
    pile.setAttribute("aria-selected", number === shownRound);
  }
  const strip = find("strip");
  const pile = strip.children[shownRound];
  strip.setAttribute("aria-activedescendant", pile.id);
  if (pile.offsetLeft < strip.scrollLeft || pile.offsetLeft + pile.offsetWidth > strip.scrollLeft + strip.clientWidth) strip.scrollLeft = pile.offsetLeft - strip.clientWidth / 2;
  const times = round.verify ? tr("{draft} ms drafting, {verify} ms verification.", { draft: fixed(round.draft * 1000, 1), verify: fixed(round.verify * 1000, 1) }) : "";
  find("round-why").replaceChildren(make("b", {}, tr("Round {round}.", { round: shownRound + 1 })), " ", ...sentence(round.why), times && ` ${times}`);
  const chosen = state.picked?.kind === "draft" && state.picked.round === shownRound ? state.picked.node : null;
  if (roundTree.number !== shownRound) {
    const number = shownRound;
    const tree = drawTree(find("round-canvas"), tr("Tree of round {round}", { round: number + 1 }), roundItems(round), 1,
      (node) => pick(node === 0 ? null : { kind: "draft", round: number, node }));
    roundTree = { number, tree };
  }
  markTree(roundTree.tree, new Set(), () => false, chosen);
}

function roundItems(round) {
  const before = shownTokens()[round.step - 1];
  const items = [{ node: 0, parent: null, order: 0, label: before ? wordOf(before) : lastWord(), share: null, state: "root", spoken: tr("The text so far") }];
  round.nodes.forEach((node, order) => items.push({
    node: node.node, parent: node.parent, order, label: wordOf(node), share: node.q, state: node.fate,
    spoken: tr("{word}, draft {share}, {fate}", { word: wordOf(node), share: percent(node.q, true), fate: DRAFTED[node.fate] }),
  }));
  if (round.extra !== "none") {
    items.push({ node: -1, parent: round.accepted.at(-1) ?? 0, order: -1, label: run.words[round.extraWord], share: null, state: round.extra,
      spoken: tr("{word}, {fate}", { word: run.words[round.extraWord], fate: DRAFTED[round.extra] }) });
  }
  return items;
}
