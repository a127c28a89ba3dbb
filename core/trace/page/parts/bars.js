// Tables of the panel: alternatives with bars, layers, the funnel.

const SAME = 5e-4;

function lane(share, kind = "") {
  return make("span", { class: "lane" }, style(make("i", { class: kind }), { width: `${(Math.min(Math.max(share, 0), 1) * 100).toFixed(2)}%` }));
}

function isProcessed(token) {
  return Math.abs(token.raw - token.final) > SAME || token.others.some(([, , raw, final]) => Math.abs(raw - final) > SAME);
}

function isContrastive(token) {
  return token.others.some((item) => item.length > 5);
}

function alternatives(token) {
  if (!token.others.length) return [make("p", { class: "remark" }, tr("Not recorded: this run did not keep alternatives."))];
  return isContrastive(token) ? contrastive(token) : [alternativeTable(token)];
}

function alternativeTable(token) {
  const both = isProcessed(token);
  const head = both ? [tr("token"), "", tr("before"), tr("after")] : [tr("token"), "", tr("probability")];
  return table("bars", head, token.others.map(([id, word, raw, final, rank]) => ({
    kind: id === token.id ? "chosen" : final === 0 ? "gone" : "",
    title: tr("{word} · id {id} · rank {rank} · {share} by the model alone",
      { word: run.words[word], id: whole(id), rank: whole(rank), share: percent(raw) }),
    cells: [run.words[word], both ? [lane(raw, "before"), lane(final)] : [lane(final)],
      ...(both ? [briefPercent(raw)] : []), final === 0 ? tr("cut") : briefPercent(final, isOnlySurvivor(token))],
  })));
}

function contrastive(token) {
  const scored = token.others.filter((item) => item.length > 5).sort((a, b) => b[6] - a[6]);
  const remark = tr("Score: the model's confidence minus the similarity to the text so far.");
  return [make("p", { class: "remark" }, remark), table("bars", [tr("token"), "", tr("confidence"), tr("similarity"), tr("score")], scored.map((item) => ({
    kind: item[0] === token.id ? "chosen" : "",
    cells: [run.words[item[1]], [lane(item[3]), lane(item[5], "likeness")], fixed(item[3], 2), fixed(item[5], 2), decimal(item[6])],
  })))];
}

function layers([chosen, divergences]) {
  const largest = Math.max(...divergences.map(([, value]) => value)) || 1;
  return [make("h3", {}, tr("Layers")), make("p", { class: "remark" }, tr("Divergence of each layer's prediction from the last layer's.")),
    table("bars", [tr("layer"), "", tr("divergence")], divergences.map(([layer, value]) => ({
      kind: layer === chosen ? "chosen" : "", cells: [tr("layer {layer}", { layer }), [lane(value / largest)], value >= 0.001 ? fixed(value, 3) : value.toExponential(1)],
    })))];
}

function table(kind, head, lines) {
  return make("table", { class: kind },
    make("thead", {}, make("tr", {}, head.map((title) => make("th", { scope: "col" }, title)))),
    make("tbody", {}, lines.map((line) => make("tr", { class: line.kind, title: line.title ?? null, "aria-current": line.kind === "chosen" },
      line.cells.map((cell) => make("td", {}, ...[cell].flat()))))));
}

function funnel(token) {
  const most = Math.log1p(Math.max(...token.funnel.map(([, survivors]) => survivors)));
  const stages = token.funnel.map(([stage, survivors, mass, raw], place) =>
    stageOf(run.stages[stage][0], survivors, most, tipOf(token.funnel[place - 1], run.stages[stage][0], survivors, mass, raw)));
  const word = wordOf(token);
  const [done, remark] = token.drawn ? [tr("drawn"), tr("{word} was drawn.", { word })] : [tr("chosen"), tr("{word} was chosen.", { word })];
  return make("ol", { class: "funnel" }, ...stages, stageOf(done, 1, most, remark));
}

function stageOf(label, survivors, most, title) {
  const height = Math.max(0.05, most ? Math.log1p(survivors) / most : 0);
  return make("li", { title }, make("div", { class: "well" }, style(make("i"), { height: `${(height * 100).toFixed(1)}%` })),
    make("b", {}, whole(survivors)), make("span", {}, label));
}

function tipOf(before, label, survivors, mass, raw) {
  if (!before) return tr("The model's distribution over {count} tokens, before any setting.", { count: whole(survivors) });
  const cut = before[1] - survivors;
  if (cut <= 0) return tr("{label}: changes the probabilities and removes no token.", { label });
  return tr("{label}: removes {cut} of {before} tokens. The remaining {left} hold {mass} of the incoming probability and {raw} of the model's own distribution.",
    { label, cut: whole(cut), before: whole(before[1]), left: whole(survivors), mass: percent(mass), raw: percent(raw) });
}
