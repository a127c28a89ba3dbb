// What is shown: which text, how far, what is picked. Everything that draws watches it.

const run = JSON.parse(find("run").textContent);
const state = { text: 0, cursor: 0, picked: null, playing: false, colouring: "probability", measure: "surprise", speed: 1 };
const watchers = [];

function watch(redraw) {
  watchers.push(redraw);
}

/** Change some of it; `changed` holds what was. */
function change(patch) {
  const before = { ...state };
  Object.assign(state, patch);
  for (const redraw of watchers) redraw(before);
}

/** Pick a token, a node of the tree or a drafted node; null picks nothing. */
function pick(picked) {
  change({ picked, playing: false });
}
