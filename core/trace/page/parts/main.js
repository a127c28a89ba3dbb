// Start the page.

function startTheme() {
  const names = ["system", "light", "dark"];
  choice(find("theme"), [tr("Auto"), tr("Light"), tr("Dark")], 0, (place) => {
    if (place === 0) delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = names[place];
  });
}

function startColouring() {
  const has = { origin: run.rounds.length > 0, second: run.second !== "" };
  const titles = Object.entries(COLOURINGS).filter(([name]) => has[name] ?? true);
  options(find("colouring"), Object.fromEntries(titles.map(([name, [title]]) => [name, title])));
  state.colouring = run.rounds.length ? "origin" : run.second ? "second" : run.scored ? "band" : "probability";
  find("colouring").value = state.colouring;
  find("colouring").addEventListener("change", (event) => change({ colouring: event.target.value }));
}

function startTexts() {
  const count = textCount();
  if (count < 2) return;
  const show = choice(find("texts"), Array.from({ length: count }, (_, place) => tr("Text {place}", { place: place + 1 })), 0,
    (place) => change({ text: place, cursor: lengthOf(place), picked: null, playing: false }));
  watch(() => show(state.text));
}

/** Space plays and Esc clears the selection, unless the focused element uses these keys itself. */
function onKey(event) {
  const isControl = event.target.closest("button, select, input");
  if (event.key === " " && !isControl && !event.ctrlKey) {
    event.preventDefault();
    playOrPause();
  } else if (event.key === "Escape" && state.picked) {
    const wasInside = find("panel").contains(document.activeElement);
    const back = { node: "tree-canvas", draft: "round-canvas" }[state.picked.kind];
    pick(null);
    if (wasInside) (back ? find(back).firstElementChild : find("tokens")).focus();
  }
}

for (const start of [startFacts, startTheme, startColouring, startTexts, startText, startPanel, startTree, startRounds, startMemory, startTimeline]) start();
for (const part of ["bar", "columns", "timeline"]) find(part).hidden = false;
document.addEventListener("keydown", onKey);
change({ cursor: lengthOf() });
showText({});
