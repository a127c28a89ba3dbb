// Draw a tree: boxes with a token and its probability; the width of an edge is its probability. Used for beams and rounds.

const BOX = { width: 118, height: 30, column: 158, row: 44, margin: 26 };

/** Create a tree of `items` [{node, parent, order, label, share, state, spoken}] in `box`; `choose(node)` is called on selection.
 *  Changes from step to step are marked afterwards, so the tree is drawn only once. */
function drawTree(box, name, items, zoom, choose) {
  const places = layOut(items);
  const rowsUsed = [...places.values()].map((place) => place.row);
  const [top, bottom] = [Math.min(0, ...rowsUsed), Math.max(...rowsUsed)];
  const columns = 1 + Math.max(...[...places.values()].map((place) => place.column));
  const width = 2 * BOX.margin + columns * BOX.column - (BOX.column - BOX.width);
  const height = 2 * BOX.margin + (bottom - top) * BOX.row + BOX.height;
  const at = (node) => {
    const { column, row } = places.get(node);
    return { x: BOX.margin + column * BOX.column, y: BOX.margin + (row - top) * BOX.row };
  };
  const edges = new Map(items.filter((item) => places.has(item.parent)).map((item) => [item.node, edge(at(item.parent), at(item.node), item)]));
  const boxes = new Map(items.map((item) => [item.node, boxOf(box.id, item, at(item.node), places.get(item.node).column)]));
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, width: width * zoom, height: height * zoom, role: "tree", tabindex: 0, "aria-label": name },
    ...edges.values(), ...boxes.values());
  const tree = { box, picture, items, places, at, edges, boxes, zoom, chosen: null, marks: new Map() };
  picture.addEventListener("click", (event) => {
    const group = event.target.closest(".node");
    if (group) choose(Number(group.dataset.node));
  });
  picture.addEventListener("keydown", (event) => onTreeKey(event, tree, choose));
  keepFocus(box, picture);
  return tree;
}

/** Mark the leading nodes, those that are still to come, and the selected one. */
function markTree(tree, best, isAhead, chosen) {
  for (const item of tree.items) {
    const mark = `${best.has(item.node) ? "best" : item.state}${isAhead(item) ? " ahead" : ""}`;
    if (tree.marks.get(item.node) === mark) continue;
    tree.marks.set(item.node, mark);
    const group = tree.boxes.get(item.node);
    group.setAttribute("class", `node ${mark}`);
    tree.edges.get(item.node)?.setAttribute("class", `edge ${mark}`);
    star(group, best.has(item.node) && item.node !== 0);
  }
  outline(tree, tree.chosen, false);
  outline(tree, chosen, true);
  tree.chosen = chosen;
  if (tree.boxes.has(chosen)) tree.picture.setAttribute("aria-activedescendant", tree.boxes.get(chosen).id);
  else tree.picture.removeAttribute("aria-activedescendant");
  reveal(tree, chosen);
}

function outline(tree, node, isChosen) {
  tree.boxes.get(node)?.classList.toggle("chosen", isChosen);
  tree.boxes.get(node)?.setAttribute("aria-selected", isChosen);
}

function star(group, isBest) {
  const drawn = group.querySelector(".star");
  if (isBest && !drawn) group.append(draw("text", { class: "star", x: BOX.width / 2, y: -5 }, "★"));
  else if (!isBest && drawn) drawn.remove();
}

function keepFocus(box, picture) {
  const focused = box.contains(document.activeElement);
  const scrolled = [box.scrollLeft, box.scrollTop];
  box.replaceChildren(picture);
  [box.scrollLeft, box.scrollTop] = scrolled;
  if (focused) picture.focus({ preventScroll: true });
}

function reveal({ box, places, at, zoom }, chosen) {
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
  return draw("path", { d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`, "stroke-width": width.toFixed(2) });
}

function boxOf(prefix, item, { x, y }, column) {
  const round = ["finished", "bonus"].includes(item.state) ? BOX.height / 2 : 8;
  const long = item.share === null ? 12 : 9;
  const label = fitted(item.label, long);
  return draw("g", {
    transform: `translate(${x} ${y})`, id: `${prefix}-${item.node}`, "data-node": item.node,
    role: "treeitem", "aria-level": column + 1, "aria-selected": false, "aria-label": item.spoken,
  }, draw("title", {}, item.spoken), draw("rect", { width: BOX.width, height: BOX.height, rx: round }),
  draw("text", { class: "label", x: 10, y: 20 }, label),
  item.share === null ? null : draw("text", { class: "share", x: BOX.width - 9, y: 20 }, treeShare(item.share)));
}

const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60]|\p{Extended_Pictographic}|\p{RI}/u;

/** Shorten a label to this many characters, cut between visible characters; wide ones count twice. */
function fitted(label, room) {
  const parts = Intl.Segmenter ? Array.from(new Intl.Segmenter().segment(label), (part) => part.segment) : [...label];
  const beyond = (most) => {
    let taken = 0;
    return parts.findIndex((part) => (taken += WIDE.test(part) ? 2 : 1) > most);
  };
  return beyond(room) < 0 ? label : `${parts.slice(0, beyond(room - 1)).join("")}…`;
}

function onTreeKey(event, tree, choose) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const chosen = tree.places.has(tree.chosen) ? tree.chosen : null;
  const next = treeStep(event.key, tree.items, tree.places, chosen);
  if (event.key === "Enter" && chosen !== null) find("panel").focus();
  if (next === undefined) return;
  event.preventDefault();
  choose(next);
}

/** Return the parent, first child, neighbour in the column, first or last node; undefined for other keys or if there is none. */
function treeStep(key, items, places, chosen) {
  if (!["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(key)) return undefined;
  if (chosen === null || key === "Home") return items[0].node;
  if (key === "End") return items.at(-1).node;
  const { parent } = items.find((item) => item.node === chosen);
  if (key === "ArrowLeft") return places.has(parent) ? parent : undefined;
  if (key === "ArrowRight") return items.filter((item) => item.parent === chosen).sort((a, b) => a.order - b.order)[0]?.node;
  const { column, row } = places.get(chosen);
  const side = key === "ArrowDown" ? 1 : -1;
  const away = (item) => (places.get(item.node).row - row) * side;
  const beside = items.filter((item) => places.get(item.node).column === column && away(item) > 0);
  return beside.sort((a, b) => away(a) - away(b))[0]?.node;
}
