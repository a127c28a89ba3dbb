// The state of the page: shown text, cursor and selection. Everything that draws subscribes to it.

const run = find("run").type === "application/json" ? JSON.parse(find("run").textContent) : await unpacked(find("run").textContent);
const state = { text: 0, cursor: 0, picked: null, playing: false, colouring: "probability", measure: "surprise", speed: 1 };
const watchers = [];

/** Return the value of JSON that is compressed with gzip and written in base64: frames in notebooks are kept small. */
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
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
