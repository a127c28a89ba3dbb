// The inspector: why this token, in words first, then the figures behind them.

function showPanel(before) {
  const about = subject();
  const told = !about ? hint() : about.kind === "token" ? (run.beams ? aboutNode(shownTokens()[about.at]) : aboutToken(about.at))
    : about.kind === "node" ? aboutNode(nodes.get(about.node)) : aboutDraft(about.round, about.node);
  find("panel").setAttribute("aria-live", state.playing ? "off" : "polite");
  find("panel").replaceChildren(...told);
  if (state.picked !== before.picked) find("panel").scrollTop = 0;
}

function heading(kind, name, ...facts) {
  const close = make("button", { type: "button", class: "close", "aria-label": "Close the inspector" }, "✕");
  close.addEventListener("click", () => pick(null));
  return [make("div", { class: "kind" }, make("h2", {}, kind), close), make("p", { class: "name", dir: "auto" }, name),
    ...facts.map((line) => make("p", { class: "about-it" }, line))];
}

function verdict(parts, opening = "") {
  return make("p", { class: "why" }, opening ? make("b", {}, `${opening} `) : null, ...sentence(parts));
}

function moved(before, after) {
  return before === after ? before : `${before} → ${after}`;
}

/** What the underlines say just now. */
const UNDERLINES = {
  probability: "The thicker and the more orange its underline, the less sure the model was of it.",
  rank: "The thicker and the more orange its underline, the further down the model's list it stood.",
  entropy: "The thicker and the more orange its underline, the less the model knew what would come.",
  band: "The thicker and the more orange its underline, the further down the model's list it stood.",
  second: "The thicker and the more orange its underline, the further the two models are apart on it.",
  origin: "Its underline says who proposed it: the draft or the model.",
  none: "",
};

function hint() {
  const rounds = run.rounds.length ? " The rounds below show what was drafted, accepted and refused." : "";
  const tree = run.beams ? " The tree below shows every continuation that was considered." : "";
  return [make("div", { class: "hint" }, make("h2", {}, "Inspector"), make("p", { class: "name" }, "Why this token?"),
    make("p", {}, run.scored ? "Click a token: here you read how likely the model held it, and what it would have put."
      : "Click a token: here you read why it was chosen, and what else could have been."),
    make("p", {}, `${UNDERLINES[state.colouring]}${tree}${rounds}`),
    make("p", {}, make("kbd", {}, "←"), " ", make("kbd", {}, "→"), " walk along the text, ", make("kbd", {}, "Space"), " plays how it was written."))];
}

function aboutToken(at) {
  const token = shownTokens()[at];
  const rank = `rank ${moved(whole(token.rank), whole(token.finalRank ?? token.rank))}${run.vocabulary ? ` of ${whole(run.vocabulary)}` : ""}`;
  return [...heading(`Token ${whole(at + 1)}`, wordOf(token), `id ${whole(token.id)} · ${rank}`,
    `${moved(percent(token.raw), percent(token.final))} · surprise ${fixed(bits(token.log), 1)} bits`), verdict(token.why),
    make("h3", {}, isContrastive(token) ? "Candidates" : "Alternatives"), ...alternatives(token),
    ...(token.second ? secondModel(token.second) : []), ...(token.layers ? layers(token.layers) : []), ...(token.funnel.length ? [make("h3", {}, "Funnel"), funnel(token)] : []),
    make("h3", {}, "This step"), numbers(token)];
}

/** What the second model held of the same token, behind the same text. */
function secondModel(other) {
  const told = `${run.second}: ${percent(other.raw)} · rank ${whole(other.rank)} · ${fixed(other.divergence, 2)} bits apart`;
  return [make("h3", {}, "The second model"), make("p", { class: "remark" }, told), ...(other.others.length ? [alternativeTable(other)] : [])];
}

function numbers(token) {
  const choices = Math.exp(token.entropy);
  const likeness = choices >= 1.5 ? `, as if among ${whole(Math.round(choices))} equal choices` : ", hardly any doubt";
  const list = make("dl");
  rows(list, [["Entropy", `${fixed(token.entropy / Math.LN2, 2)} bits`], ["Perplexity", `${fixed(choices, 1)}${likeness}`],
    ...(token.seconds ? [["Time", `${fixed(token.seconds * 1000, 1)} ms`]] : [])]);
  return list;
}

const VERDICTS = { kept: "Kept", pruned: "Pruned", finished: "Finished", early_stopped: "Stopped early" };
const FATES = { kept: "kept", pruned: "pruned", finished: "ended", early_stopped: "stopped" };

function aboutNode(node) {
  const rivals = run.beams.steps[node.step].nodes.filter((other) => other.group === node.group).sort((a, b) => a.place - b.place);
  const first = Math.max(0, Math.min(rivals.indexOf(rivals.find((other) => other.node === node.node)) - 6, rivals.length - 12));
  return [...heading("Beam node", wordOf(node), `step ${node.step + 1} · score ${decimal(node.score)} · log p ${decimal(node.logp)}`,
    `${moved(percent(node.raw), percent(node.final))} · rank ${whole(node.rank)} of the model's`),
    verdict(node.why, `${VERDICTS[node.fate]} at step ${node.step + 1}.`),
    make("h3", {}, "Text so far"), make("p", { class: "so-far", dir: "auto" }, pathTo(node.node).map((at) => at.text).join("").trim() || "–"),
    make("h3", {}, `Step ${node.step + 1}`), table("rivals", ["continuation", "log p", "score", ""], rivals.slice(first, first + 12).map((other) => ({
      kind: other.node === node.node ? "chosen" : other.fate === "pruned" ? "gone" : "",
      cells: [`${other.place}. ${wordOf(other)}`, decimal(other.logp), decimal(other.score), FATES[other.fate]],
    }))), make("h3", {}, "Score"), make("p", { class: "formula" }, formula(node))];
}

/** Σ log p ÷ length^penalty with the node's own figures. */
function formula(node) {
  const before = nodes.get(node.parent)?.score ?? 0;
  const penalty = run.beams.penalty;
  const divisor = penalty === 1 ? `${node.step + 1}` : `${node.step + 1}^${`${penalty}`.replace("-", "−")}`;
  return `${decimal(before, 3)} + (${decimal(node.logp, 3)}) = ${decimal(node.score, 3)}\n${decimal(node.score, 3)} ÷ ${divisor} = ${decimal(node.normalized, 3)}`;
}

function aboutDraft(number, at) {
  const round = run.rounds[number];
  if (at < 0) {
    return [...heading(round.extra === "bonus" ? "Bonus token" : "Correction", run.words[round.extraWord], `round ${number + 1}`),
      verdict(round.extraWhy, round.extra === "bonus" ? "Bonus." : "Corrected.")];
  }
  const node = round.nodes.find((other) => other.node === at);
  const rivals = round.nodes.filter((other) => other.parent === node.parent).sort((a, b) => b.q - a.q);
  const opening = { accepted: "Accepted.", refused: "Refused.", unreached: "Never reached." }[node.fate];
  const dice = node.ratio === null || node.die === null ? [] : [make("h3", {}, "Die and ratio"), make("p", { class: "formula" },
    `min(1, p ÷ q) = ${fixed(node.ratio, 2)}\ndie ${fixed(node.die, 2)} ${node.fate === "accepted" ? "<" : "≥"} ${fixed(node.ratio, 2)}`)];
  return [...heading("Drafted node", wordOf(node), `round ${number + 1} · draft ${percent(node.q)} · target ${percent(node.p)}`), verdict(node.why, opening),
    make("h3", {}, "Its rivals"), table("rivals", ["token", "draft", "target", ""], rivals.map((other) => ({
      kind: other.node === at ? "chosen" : other.fate === "unreached" ? "gone" : "",
      cells: [wordOf(other), percent(other.q), percent(other.p), other.fate],
    }))), ...dice];
}

function startPanel() {
  watch(showPanel);
}
