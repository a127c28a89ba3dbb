// What is said of the run as a whole.

function startFacts() {
  const fact = new Map(run.settings);
  find("title").textContent = run.title;
  find("made").textContent = [fact.get("Model"), run.strategy, fact.has("Cache") ? `cache ${fact.get("Cache")}` : "",
    fact.has("Seed") ? `seed ${fact.get("Seed")}` : "", ending()].filter(Boolean).join(" · ");
  find("notices").append(...run.notices.map((notice) => make("p", {}, notice)));
  rows(find("settings"), run.settings);
  rows(find("metrics"), run.metrics);
}

function ending() {
  const text = run.texts[0];
  const count = run.beams ? run.beams.steps.length : text.tokens.length;
  return `${counted(count, run.beams ? "step" : "token")}, ${text.ending}`;
}
