// The memory of the cache over the run: measured bytes, stacked by part, and predicted bytes.

const CHART = { height: 220, left: 68, right: 12, top: 10, bottom: 26 };

function startMemory() {
  if (!run.memory) return;
  find("memory").hidden = false;
  const key = run.memory.parts.map((part, place) => make("span", { class: `part-${place % 6}` }, make("i", { class: "fill" }), part));
  if (run.memory.predicted.length) key.push(make("span", {}, tr("┈ predicted")));
  find("memory-key").append(...key);
  watch(showMemory);
  new ResizeObserver(([{ contentRect }]) => drawMemory(Math.max(280, contentRect.width))).observe(find("memory-chart"));
}

/** Mark the position of the cursor and the bytes of the cache there. */
function showMemory() {
  const words = memoryWords();
  find("memory-now").textContent = words;
  find("memory-chart").firstElementChild?.setAttribute("aria-label", words);
  const line = find("memory-cursor");
  if (!line) return;
  for (const end of ["x1", "x2"]) line.setAttribute(end, memoryPlace(state.cursor));
}

let memoryPlace = () => 0;

function drawMemory(width) {
  const { points, predicted } = run.memory;
  const last = Math.max(1, lengthOf(), ...points.map(([x]) => x));
  const most = Math.max(1, ...points.map(([, bytes]) => bytes), ...predicted.map(([, bytes]) => bytes)) * 1.08;
  const x = (at) => CHART.left + (at / last) * (width - CHART.left - CHART.right);
  const y = (bytes) => CHART.height - CHART.bottom - (bytes / most) * (CHART.height - CHART.top - CHART.bottom);
  const line = predicted.map(([at, bytes], place) => `${place ? "L" : "M"}${x(at).toFixed(1)} ${y(bytes).toFixed(1)}`).join("");
  const picture = draw("svg", { viewBox: `0 0 ${width} ${CHART.height}`, role: "img" },
    ...grid(most, width, y), ...areas(points, x, y),
    ...points.map(([at, bytes]) => draw("circle", { class: "measured", cx: x(at), cy: y(bytes), r: 2.5 })), predicted.length ? draw("path", { class: "predicted", d: line }) : null,
    draw("line", { class: "cursor", id: "memory-cursor", y1: CHART.top, y2: CHART.height - CHART.bottom }),
    draw("text", { x: CHART.left, y: CHART.height - 8 }, "0"),
    draw("text", { x: width - CHART.right, y: CHART.height - 8, "text-anchor": "end" }, stepsOrTokens(last)));
  find("memory-chart").replaceChildren(picture);
  memoryPlace = x;
  showMemory();
}

function grid(most, width, y) {
  return [0, 0.5, 1].flatMap((share) => {
    const bytes = (most / 1.08) * share;
    return [draw("line", { class: "grid", x1: CHART.left, x2: width - CHART.right, y1: y(bytes), y2: y(bytes) }),
      draw("text", { x: CHART.left - 8, y: y(bytes) + 4, "text-anchor": "end" }, size(bytes))];
  });
}

function areas(points, x, y) {
  const floor = points.map(() => 0);
  return run.memory.parts.flatMap((_, part) => {
    const below = [...floor];
    points.forEach(([, , sizes], place) => { floor[place] += sizes[part]; });
    const top = points.map(([at], place) => `${x(at).toFixed(1)} ${y(floor[place]).toFixed(1)}`);
    const bottom = points.map(([at], place) => `${x(at).toFixed(1)} ${y(below[place]).toFixed(1)}`).reverse();
    return [draw("path", { class: `area part-${part % 6}`, d: `M${[...top, ...bottom].join("L")}Z` }),
      draw("path", { class: `edge-of part-${part % 6}`, d: `M${top.join("L")}` })];
  });
}

/** Describe the last measurement up to the cursor. */
function memoryWords() {
  const seen = run.memory.points.filter(([at]) => at <= state.cursor);
  if (!seen.length) return tr("Nothing measured yet.");
  const [at, bytes, sizes] = seen.at(-1);
  const parts = run.memory.parts.map((part, place) => `${part} ${size(sizes[place])}`).join(", ");
  return tr("After {count}: {size}", { count: stepsOrTokens(at), size: size(bytes) }) + (run.memory.parts.length > 1 ? ` (${parts})` : "");
}
