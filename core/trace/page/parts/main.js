// Start the page.

function startTheme() {
  const names = ["system", "light", "dark"];
  choice(find("theme"), [tr("Auto"), tr("Light"), tr("Dark")], 0, (place) => {
    if (place === 0) delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = names[place];
  });
}

function startRuns() {
  if (runs.length < 2) return;
  find("runs").hidden = false;
  options(find("run-choice"), Object.fromEntries(runs.map((one, place) => [place, tr("Run {number}: {title}", { number: place + 1, title: one.title })])));
  find("run-choice").value = document.documentElement.dataset.run ?? "0";
  find("run-choice").addEventListener("change", (event) => showRun(event.target.value));
}

/** Show another run: the page starts again with it. */
function showRun(place) {
  change({ playing: false });
  life.abort();
  document.documentElement.dataset.run = place;
  const source = document.querySelector("script[type=module]").textContent;
  document.body.replaceChildren(...untouched.childNodes);
  document.querySelector("script[type=module]").remove();
  const script = document.createElement("script");
  script.type = "module";
  script.textContent = source;
  document.body.append(script);
  find("run-choice").focus();
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

for (const start of [startRuns, startFacts, startTheme, startColouring, startTexts, startText, startPanel, startTree, startRounds, startMemory, startTimeline]) start();
for (const part of ["bar", "columns", "timeline"]) find(part).hidden = false;
document.addEventListener("keydown", onKey, { signal: life.signal });
change({ cursor: lengthOf() });
showText({});
