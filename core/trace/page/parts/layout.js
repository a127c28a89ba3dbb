// Positions of a tree's nodes: one column per step; in a column, branches are at least one row apart.

/** Return a map node → {column, row} for `items` [{node, parent, order}], parents before children. */
function layOut(items) {
  const children = new Map(items.map((item) => [item.node, []]));
  const roots = [];
  for (const item of items) (children.get(item.parent) ?? roots).push(item);
  const places = new Map();
  const top = [];
  for (const root of roots) settle(measure(root, 0, children), top, places, 0);
  return places;
}

/** Lay out one subtree: its own row is 0; `low` and `high` are its outermost rows in each column. */
function measure(item, column, children) {
  const shape = { item, column, low: [0], high: [0], parts: [] };
  const below = [...children.get(item.node)].sort((a, b) => a.order - b.order);
  let outline = [];
  for (const child of below) {
    const part = measure(child, column + 1, children);
    const shift = gap(outline, part);
    part.low.forEach((row, depth) => {
      outline[depth] = Math.max(outline[depth] ?? -Infinity, part.high[depth] + shift);
    });
    shape.parts.push({ part, shift });
  }
  const first = shape.parts[0]?.shift ?? 0;
  for (const { part, shift } of shape.parts) {
    part.low.forEach((row, depth) => {
      const at = depth + 1;
      shape.low[at] = Math.min(shape.low[at] ?? Infinity, row + shift - first);
      shape.high[at] = Math.max(shape.high[at] ?? -Infinity, part.high[depth] + shift - first);
    });
  }
  return shape;
}

/** Return how many rows a subtree must move down to lie below the existing ones. */
function gap(outline, part) {
  return outline.length ? Math.max(...part.low.map((row, depth) => (outline[depth] ?? -Infinity) + 1 - row), 0) : 0;
}

function settle(shape, outline, places, base) {
  const shift = gap(outline, shape);
  const walk = (at, row) => {
    places.set(at.item.node, { column: at.column, row });
    const first = at.parts[0]?.shift ?? 0;
    for (const { part, shift: down } of at.parts) walk(part, row + down - first);
  };
  walk(shape, base + shift);
  shape.high.forEach((row, depth) => {
    outline[depth] = Math.max(outline[depth] ?? -Infinity, row + shift);
  });
}
