// Settings and figures of the whole run.

function startFacts() {
  find("title").textContent = run.title;
  find("made").textContent = [...run.made, ending()].join(" · ");
  find("notices").append(...run.notices.map((notice) => make("p", {}, notice)));
  rows(find("settings"), run.settings);
  rows(find("metrics"), run.metrics);
}

function ending() {
  const text = run.texts[0];
  const count = run.beams ? run.beams.steps.length : text.tokens.length;
  return tr("{count}, {ending}", { count: stepsOrTokens(count), ending: text.ending });
}

function stepsOrTokens(count) {
  return run.beams ? trn("{n} step", "{n} steps", count) : trn("{n} token", "{n} tokens", count);
}
