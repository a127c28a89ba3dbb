// The inspector: why this token was chosen, as a sentence, followed by its figures.

function showPanel(before) {
  const about = subject();
  const content = !about ? hint() : about.kind === "token" ? (run.beams ? aboutNode(shownTokens()[about.at]) : aboutToken(about.at))
    : about.kind === "node" ? aboutNode(nodes.get(about.node)) : aboutDraft(about.round, about.node);
  find("panel").setAttribute("aria-live", state.playing ? "off" : "polite");
  find("panel").replaceChildren(...content);
  if (state.picked !== before.picked) find("panel").scrollTop = 0;
}

function heading(kind, name, ...facts) {
  const close = make("button", { type: "button", class: "close", "aria-label": tr("Close the inspector") }, "✕");
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

/** Meaning of the underlines in the current colouring. */
const UNDERLINES = {
  probability: tr("Thicker and more orange: the model gave this token a lower probability."),
  rank: tr("Thicker and more orange: this token had a lower rank in the model's list."),
  entropy: tr("Thicker and more orange: the model was less certain what comes next."),
  band: tr("Thicker and more orange: this token had a lower rank in the model's list."),
  second: tr("Thicker and more orange: the two models differ more on this token."),
  origin: tr("The underline shows who proposed the token: the draft or the model."),
  none: "",
};

function hint() {
  const rounds = run.rounds.length ? tr("The rounds below show which tokens were drafted, accepted and rejected.") : "";
  const tree = run.beams ? tr("The tree below shows every continuation that was considered.") : "";
  const keys = { left: make("kbd", {}, "←"), right: make("kbd", {}, "→"), space: make("kbd", {}, tr("Space")) };
  return [make("div", { class: "hint" }, make("h2", {}, tr("Inspector")), make("p", { class: "name" }, tr("Why this token?")),
    make("p", {}, run.scored ? tr("Click a token to see how likely the model found it, and what it would have written instead.")
      : tr("Click a token to see why it was chosen, and what the alternatives were.")),
    make("p", {}, [UNDERLINES[state.colouring], tree, rounds].filter(Boolean).join(" ")),
    make("p", {}, ...trAround("{left} {right}: move through the text. {space}: replay the generation.", keys)))];
}

/** Return the figures that a remote engine reported for a token: id, rank, probability and surprise. */
function toldElsewhere(token) {
  const known = [token.id < 0 ? "" : tr("id {id}", { id: whole(token.id) }), token.rank ? tr("rank {rank}", { rank: whole(token.rank) }) : "",
    token.raw === null ? tr("probability not reported") : percent(token.raw)];
  return known.filter(Boolean).join(" · ");
}

function aboutToken(at) {
  const token = shownTokens()[at];
  if (token.untold) {
    return [...heading(tr("Token {place}", { place: whole(numberOf(at)) }), wordOf(token), toldElsewhere(token)), verdict(token.why),
      ...(token.others.length ? [make("h3", {}, tr("Alternatives")), ...alternatives(token)] : [])];
  }
  const place = { rank: moved(whole(token.rank), whole(token.finalRank ?? token.rank)), count: whole(run.vocabulary) };
  const rank = run.vocabulary ? tr("rank {rank} of {count}", place) : tr("rank {rank}", place);
  const identity = tr("id {id}", { id: whole(token.id) });
  const surprise = tr("surprise {bits} bits", { bits: fixed(bits(token.log), 1) });
  return [...heading(tr("Token {place}", { place: whole(numberOf(at)) }), wordOf(token), `${identity} · ${rank}`,
    `${moved(percent(token.raw), percent(token.final, isOnlySurvivor(token)))} · ${surprise}`), verdict(token.why),
    make("h3", {}, isContrastive(token) ? tr("Candidates") : tr("Alternatives")), ...alternatives(token),
    ...(token.second ? secondModel(token.second) : []), ...(token.layers ? layers(token.layers) : []), ...(token.funnel.length ? [make("h3", {}, tr("Funnel")), funnel(token)] : []),
    ...(token.did ?? []).map((content) => make("p", { class: "remark" }, ...sentence(content))),
    make("h3", {}, tr("This step")), numbers(token)];
}

/** Show the figures of the comparison model for the same token after the same text. */
function secondModel(other) {
  const content = tr("{model}: {share} · rank {rank} · divergence between the models: {bits} bits",
    { model: run.second, share: percent(other.raw), rank: whole(other.rank), bits: fixed(other.divergence, 2) });
  return [make("h3", {}, tr("Comparison model")), make("p", { class: "remark" }, content), ...(other.others.length ? [alternativeTable(other)] : [])];
}

function numbers(token) {
  const choices = Math.exp(token.entropy);
  const perplexity = choices >= 1.5
    ? tr("{value}, like {count} equally likely choices", { value: fixed(choices, 1), count: whole(Math.round(choices)) })
    : tr("{value}, almost no uncertainty", { value: fixed(choices, 1) });
  const list = make("dl");
  rows(list, [[tr("Entropy"), tr("{bits} bits", { bits: fixed(token.entropy / Math.LN2, 2) })], [tr("Perplexity"), perplexity],
    ...(token.seconds ? [[tr("Time"), `${fixed(token.seconds * 1000, 1)} ms`]] : [])]);
  return list;
}

const VERDICTS = {
  kept: (step) => tr("Kept at step {step}.", { step }),
  pruned: (step) => tr("Pruned at step {step}.", { step }),
  finished: (step) => tr("Finished at step {step}.", { step }),
  early_stopped: (step) => tr("Stopped early at step {step}.", { step }),
};
const FATES = { kept: tr("kept"), pruned: tr("pruned"), finished: tr("finished"), early_stopped: tr("stopped") };
const DRAFTED = { accepted: tr("accepted"), refused: tr("rejected"), unreached: tr("not reached"), bonus: tr("bonus"), correction: tr("correction") };

function aboutNode(node) {
  const rivals = run.beams.steps[node.step].nodes.filter((other) => other.group === node.group).sort((a, b) => a.place - b.place);
  const first = Math.max(0, Math.min(rivals.indexOf(rivals.find((other) => other.node === node.node)) - 6, rivals.length - 12));
  const step = node.step + 1;
  return [...heading(tr("Beam node"), wordOf(node), tr("step {step} · score {score} · log p {log}", { step, score: decimal(node.score), log: decimal(node.logp) }),
    tr("{share} · rank {rank} in the model's list", { share: moved(percent(node.raw), percent(node.final)), rank: whole(node.rank) })),
    verdict(node.why, VERDICTS[node.fate](step)),
    ...nodeFunnel(node),
    make("h3", {}, tr("Text so far")), make("p", { class: "so-far", dir: "auto" }, pathTo(node.node).map((at) => at.text).join("").trim() || "–"),
    make("h3", {}, tr("Step {step}", { step })), table("rivals", [tr("continuation"), "log p", tr("score"), ""], rivals.slice(first, first + 12).map((other) => ({
      kind: other.node === node.node ? "chosen" : other.fate === "pruned" ? "gone" : "",
      cells: [`${other.place}. ${wordOf(other)}`, decimal(other.logp), decimal(other.score), FATES[other.fate]],
    }))), make("h3", {}, tr("Score")), make("p", { class: "formula" }, formula(node))];
}

/** Return the stages of the distribution that the node was chosen from; nothing where none changed it. */
function nodeFunnel(node) {
  const stages = run.beams.steps[node.step].funnels?.[node.parent];
  return stages ? [make("h3", {}, tr("Funnel")), funnel({ ...node, funnel: stages })] : [];
}

/** Return Σ log p ÷ length^penalty with the node's own values. */
function formula(node) {
  const before = nodes.get(node.parent)?.score ?? 0;
  const penalty = run.beams.penalty;
  const divisor = penalty === 1 ? `${node.step + 1}` : `${node.step + 1}^${`${penalty}`.replace("-", "−")}`;
  return `${decimal(before, 3)} + (${decimal(node.logp, 3)}) = ${decimal(node.score, 3)}\n${decimal(node.score, 3)} ÷ ${divisor} = ${decimal(node.normalized, 3)}`;
}

function aboutDraft(number, at) {
  const round = run.rounds[number];
  if (at < 0) {
    const isBonus = round.extra === "bonus";
    return [...heading(isBonus ? tr("Bonus token") : tr("Correction"), run.words[round.extraWord], tr("round {round}", { round: number + 1 })),
      verdict(round.extraWhy, isBonus ? tr("Bonus.") : tr("Corrected."))];
  }
  const node = round.nodes.find((other) => other.node === at);
  const rivals = round.nodes.filter((other) => other.parent === node.parent).sort((a, b) => b.q - a.q);
  const opening = { accepted: tr("Accepted."), refused: tr("Rejected."), unreached: tr("Not reached.") }[node.fate];
  const die = tr("random {die}", { die: fixed(node.die ?? 0, 2) });
  const dice = node.ratio === null || node.die === null ? [] : [make("h3", {}, tr("Draw and ratio")), make("p", { class: "formula" },
    `min(1, p ÷ q) = ${fixed(node.ratio, 2)}\n${die} ${node.fate === "accepted" ? "<" : "≥"} ${fixed(node.ratio, 2)}`)];
  return [...heading(tr("Drafted node"), wordOf(node),
    tr("round {round} · draft {draft} · target {target}", { round: number + 1, draft: percent(node.q, true), target: percent(node.p) })), verdict(node.why, opening),
    make("h3", {}, tr("Alternatives")), table("rivals", [tr("token"), tr("draft"), tr("target"), ""], rivals.map((other) => ({
      kind: other.node === at ? "chosen" : other.fate === "unreached" ? "gone" : "",
      cells: [wordOf(other), percent(other.q, true), percent(other.p), DRAFTED[other.fate]],
    }))), ...dice];
}

function startPanel() {
  watch(showPanel);
}
