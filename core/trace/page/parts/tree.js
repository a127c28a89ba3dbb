// A tree as a drawing: boxes with a token and its share, edges as wide as that is likely. Beams and rounds both use it.

const BOX = { width: 118, height: 30, column: 158, row: 44, margin: 26 };

/** Draw `items` [{node, parent, order, label, share, state, best, ahead, spoken}] into `box`; `choose(node)` on a pick. */
function drawTree(box, name, items, chosen, zoom, choose) {
  const places = layOut(items);
  const rowsUsed = [...places.values()].map((place) => place.row);
  const top = Math.min(0, ...rowsUsed);
  const at = (node) => {
    const { column, row } = places.get(node);
    return { x: BOX.margin + column * BOX.column, y: BOX.margin + (row - top) * BOX.row };
  };
  const columns = 1 + Math.max(...[...places.values()].map((place) => place.column));
  const width = 2 * BOX.margin + columns * BOX.column - (BOX.column - BOX.width);
  const height = 2 * BOX.margin + (Math.max(...rowsUsed) - top) * BOX.row + BOX.height;
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, width: width * zoom, height: height * zoom, role: "tree", tabindex: 0, "aria-label": name });
  const edges = items.filter((item) => places.has(item.parent)).map((item) => edge(at(item.parent), at(item.node), item));
  picture.append(...edges, ...items.map((item) => boxOf(box.id, item, at(item.node), chosen, places.get(item.node).column)));
  picture.addEventListener("click", (event) => {
    const group = event.target.closest(".node");
    if (group) choose(Number(group.dataset.node));
  });
  picture.addEventListener("keydown", (event) => onTreeKey(event, items, places, chosen, choose));
  if (items.some((item) => item.node === chosen)) picture.setAttribute("aria-activedescendant", `${box.id}-${chosen}`);
  keepFocus(box, picture);
  reveal(box, chosen, places, at, zoom);
}

function keepFocus(box, picture) {
  const focused = box.contains(document.activeElement);
  const scrolled = [box.scrollLeft, box.scrollTop];
  box.replaceChildren(picture);
  [box.scrollLeft, box.scrollTop] = scrolled;
  if (focused) picture.focus({ preventScroll: true });
}

function reveal(box, chosen, places, at, zoom) {
  if (!places.has(chosen)) return;
  const { x, y } = at(chosen);
  const [left, top] = [x * zoom, y * zoom];
  if (left < box.scrollLeft + 20 || left + BOX.width > box.scrollLeft + box.clientWidth - 20) box.scrollLeft = left - box.clientWidth / 2;
  if (top < box.scrollTop + 20 || top + BOX.height > box.scrollTop + box.clientHeight - 20) box.scrollTop = top - box.clientHeight / 2;
}

function edge(from, to, item) {
  const [x1, y1, x2, y2] = [from.x + BOX.width, from.y + BOX.height / 2, to.x, to.y + BOX.height / 2];
  const middle = (x1 + x2) / 2;
  const width = 1 + 4 * Math.min(1, Math.max(0, item.share ?? 0));
  return draw("path", { class: `edge ${kindOf(item)}`, d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`, "stroke-width": width.toFixed(2) });
}

function kindOf(item) {
  return `${item.best ? "best" : item.state}${item.ahead ? " ahead" : ""}`;
}

function boxOf(prefix, item, { x, y }, chosen, column) {
  const round = ["finished", "bonus"].includes(item.state) ? BOX.height / 2 : 8;
  const long = item.share === null ? 12 : 9;
  const label = [...item.label].length > long ? `${[...item.label].slice(0, long - 1).join("")}…` : item.label;
  return draw("g", {
    class: `node ${kindOf(item)}${item.node === chosen ? " chosen" : ""}`, transform: `translate(${x} ${y})`, id: `${prefix}-${item.node}`,
    role: "treeitem", "aria-level": column + 1, "aria-selected": item.node === chosen, "aria-label": item.spoken, "data-node": item.node,
  }, draw("title", {}, item.spoken), draw("rect", { width: BOX.width, height: BOX.height, rx: round }),
  draw("text", { class: "label", x: 10, y: 20 }, label),
  item.share === null ? null : draw("text", { class: "share", x: BOX.width - 9, y: 20 }, briefShare(item.share)),
  item.best && item.node !== 0 ? draw("text", { class: "star", x: BOX.width / 2, y: -5 }, "★") : null);
}

/** .46; 1 for certainty. */
function briefShare(share) {
  return share >= 0.995 ? "1" : fixed(share, 2).replace(/^0/, "");
}

function onTreeKey(event, items, places, chosen, choose) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const next = treeStep(event.key, items, places, places.has(chosen) ? chosen : null);
  if (event.key === "Enter" && chosen !== null) find("panel").focus();
  if (next === undefined) return;
  event.preventDefault();
  choose(next);
}

/** Parent, foremost child, neighbour in the column, first and last node; undefined for other keys and where there is none. */
function treeStep(key, items, places, chosen) {
  const known = new Map(items.map((item) => [item.node, item]));
  if (!["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(key)) return undefined;
  if (chosen === null || key === "Home") return items[0].node;
  if (key === "End") return items.at(-1).node;
  if (key === "ArrowLeft") return known.has(known.get(chosen).parent) ? known.get(chosen).parent : undefined;
  if (key === "ArrowRight") return items.filter((item) => item.parent === chosen).sort((a, b) => a.order - b.order)[0]?.node;
  const { column, row } = places.get(chosen);
  const side = key === "ArrowDown" ? 1 : -1;
  const beside = items.filter((item) => places.get(item.node).column === column && (places.get(item.node).row - row) * side > 0);
  return beside.sort((a, b) => Math.abs(places.get(a.node).row - row) - Math.abs(places.get(b.node).row - row))[0]?.node;
}
