// The state of the page: shown text, cursor and selection. Everything that draws subscribes to it.

const untouched = document.body.cloneNode(true);
const life = new AbortController();
const data = find("run").type === "application/json" ? JSON.parse(find("run").textContent) : await unpacked(find("run").textContent);
const runs = data.runs ?? [data];
const run = runs[Number(document.documentElement.dataset.run ?? 0)];
const state = { text: 0, cursor: 0, picked: null, playing: false, colouring: "probability", measure: "surprise", speed: 1 };
const watchers = [];

/** Return the data of a frame in a notebook, which is kept small: compressed with gzip, and beam nodes by property. */
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const data = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  for (const one of data.runs ?? [data]) {
    for (const step of one.beams?.steps ?? []) step.nodes = recordsOf(step.nodes);
  }
  return data;
}

function recordsOf(columns) {
  const names = Object.keys(columns);
  return (columns.node ?? []).map((_, place) => Object.fromEntries(names.map((name) => [name, columns[name][place]])));
}

function watch(redraw) {
  watchers.push(redraw);
}

/** Change parts of the state; `changed` contains their previous values. */
function change(patch) {
  const before = { ...state };
  Object.assign(state, patch);
  for (const redraw of watchers) redraw(before);
}

/** Select a token, a node of the tree or a drafted node; null clears the selection. */
function pick(picked) {
  change({ picked, playing: false });
}
