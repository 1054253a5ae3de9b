// A layered layout for graphs of steps: ranks from left to right, fewer crossings
// by medians, backward edges below the graph.

const gapX = 64, gapY = 26, high = 38, char = 7.2, padX = 14;

/**
 * layout places nodes and edges.
 * @param {string[]} names in the order they were declared
 * @param {{from: string, to: string}[]} edges
 * @param {string} [first] the start node
 * @returns {{nodes: Map<string, {x, y, w, h}>, edges: {from, to, points, back}[], width, height}}
 */
export function layout(names, edges, first = names[0]) {
  const known = new Set(names);
  const real = edges.filter((e) => known.has(e.from) && known.has(e.to));
  const back = backward(names, real, first);
  const forward = real.filter((e, i) => !back.has(i) && e.from !== e.to);
  const rank = ranks(names, forward);
  const { layers, chains } = fill(names, forward, rank);
  order(layers, chains);
  return place(names, real, back, layers, chains, rank);
}

// backward finds the edges that close a cycle, by depth-first search.
function backward(names, edges, first) {
  const out = new Map(names.map((n) => [n, []]));
  edges.forEach((e, i) => out.get(e.from).push([i, e.to]));
  const state = new Map();
  const back = new Set();
  const visit = (n) => {
    state.set(n, 1);
    for (const [i, to] of out.get(n)) {
      if (state.get(to) === 1) back.add(i);
      else if (!state.has(to)) visit(to);
    }
    state.set(n, 2);
  };
  for (const n of [first, ...names]) if (out.has(n) && !state.has(n)) visit(n);
  return back;
}

// ranks gives each node the length of the longest path to it.
function ranks(names, edges) {
  const rank = new Map(names.map((n) => [n, 0]));
  for (let round = 0; round < names.length; round++) {
    let moved = false;
    for (const { from, to } of edges) {
      if (rank.get(to) < rank.get(from) + 1) { rank.set(to, rank.get(from) + 1); moved = true; }
    }
    if (!moved) break;
  }
  return rank;
}

// fill builds the layers, with a placeholder in each layer that an edge crosses.
function fill(names, edges, rank) {
  const layers = [];
  const add = (r, id) => { (layers[r] ??= []).push(id); return id; };
  names.forEach((n) => add(rank.get(n), n));
  const chains = edges.map(({ from, to }, i) => {
    const chain = [from];
    for (let r = rank.get(from) + 1; r < rank.get(to); r++) chain.push(add(r, `\u0000${i}/${r}`));
    return [...chain, to];
  });
  return { layers, chains };
}

// order sorts each layer by the median of its neighbors, in both directions.
function order(layers, chains) {
  const near = new Map();
  const join = (a, b) => { if (!near.has(a)) near.set(a, []); near.get(a).push(b); };
  for (const chain of chains) for (let i = 1; i < chain.length; i++) { join(chain[i], chain[i - 1]); join(chain[i - 1], chain[i]); }
  for (let sweep = 0; sweep < 8; sweep++) {
    const down = sweep % 2 === 0;
    for (let k = 1; k < layers.length; k++) {
      const r = down ? k : layers.length - 1 - k;
      const fixed = new Map(layers[down ? r - 1 : r + 1].map((id, i) => [id, i]));
      const middle = new Map(layers[r].map((id, i) => {
        const at = (near.get(id) ?? []).filter((o) => fixed.has(o)).map((o) => fixed.get(o)).sort((a, b) => a - b);
        return [id, at.length ? (at[(at.length - 1) >> 1] + at[at.length >> 1]) / 2 : i];
      }));
      layers[r].sort((a, b) => middle.get(a) - middle.get(b));
    }
  }
}

const isReal = (id) => id[0] !== "\u0000";

function place(names, edges, back, layers, chains) {
  const boxes = new Map();
  const rows = Math.max(...layers.map((l) => l.length));
  let x = 16;
  for (const layer of layers) {
    const w = Math.max(...layer.map((id) => (isReal(id) ? id.length * char + 2 * padX : 0)), 56);
    const free = (rows - layer.length) * (high + gapY);
    layer.forEach((id, i) => boxes.set(id, { x, y: 40 + free / 2 + i * (high + gapY), w: isReal(id) ? Math.max(56, id.length * char + 2 * padX) : w, h: high }));
    x += w + gapX;
  }
  const low = 40 + rows * (high + gapY);
  let around = 0;
  const forward = new Map(chains.map((c) => [c[0] + "\u0001" + c.at(-1), c]));
  const drawn = edges.map((e, i) => {
    const a = boxes.get(e.from), b = boxes.get(e.to);
    if (e.from === e.to) return { ...e, back: true, path: loop(a), arrow: { x: a.x + a.w / 2 + 12, y: a.y, angle: 75 }, label: { x: a.x + a.w / 2, y: a.y - 24 } };
    if (back.has(i)) return { ...e, back: true, ...detour(a, b, low + 12 * around++, [blocked(boxes, a), blocked(boxes, b)]) };
    return { ...e, back: false, ...through(forward.get(e.from + "\u0001" + e.to).map((id) => boxes.get(id))) };
  });
  return {
    nodes: new Map(names.map((n) => [n, boxes.get(n)])), edges: drawn,
    width: x - gapX + 16, height: low + 12 * around + 8,
  };
}

const blocked = (boxes, a) => [...boxes.values()].some((b) => b.x === a.x && b.y > a.y);

const p = (...n) => n.map((v) => v.toFixed(1)).join(" ");

// through is a curve along the placeholders that ends in an arrow to the right.
function through(boxes) {
  let [x, y] = [boxes[0].x + boxes[0].w, boxes[0].y + high / 2];
  const start = [x, y];
  let d = `M${p(x, y)}`;
  for (const b of boxes.slice(1)) {
    const [tx, ty] = [b.x, b.y + high / 2];
    const mid = (tx - x) / 2;
    d += `C${p(x + mid, y, tx - mid, ty, tx, ty)}`;
    [x, y] = [tx, ty];
    if (b !== boxes.at(-1)) { d += `H${p(b.x + b.w)}`; x = b.x + b.w; }
  }
  return { path: d, arrow: { x, y, angle: 0 }, label: { x: (start[0] + x) / 2, y: (start[1] + y) / 2 - 6 } };
}

// detour leads back below all nodes: it runs down next to a box that has another box below it.
function detour(a, b, y, [aBlocked, bBlocked]) {
  const points = aBlocked
    ? [[a.x + a.w, a.y + high - 10], [a.x + a.w + 16, a.y + high - 10], [a.x + a.w + 16, y]]
    : [[a.x + a.w / 2, a.y + high], [a.x + a.w / 2, y]];
  const end = bBlocked
    ? [[b.x - 18, y], [b.x - 18, b.y + high - 10], [b.x, b.y + high - 10]]
    : [[b.x + b.w / 2, y], [b.x + b.w / 2, b.y + high]];
  const [x2, y2] = end.at(-1);
  return {
    path: rounded([...points, ...end]), arrow: { x: x2, y: y2, angle: bBlocked ? 0 : -90 },
    label: { x: (points.at(-1)[0] + end[0][0]) / 2, y: y - 4 },
  };
}

// rounded joins points that are vertically or horizontally aligned.
function rounded(points) {
  let d = `M${p(...points[0])}`;
  for (let i = 1; i < points.length - 1; i++) {
    const [[x0, y0], [x, y], [x1, y1]] = points.slice(i - 1, i + 2);
    const r = Math.min(9, Math.hypot(x - x0, y - y0) / 2, Math.hypot(x1 - x, y1 - y) / 2);
    d += `L${p(x - Math.sign(x - x0) * r, y - Math.sign(y - y0) * r)}Q${p(x, y, x + Math.sign(x1 - x) * r, y + Math.sign(y1 - y) * r)}`;
  }
  return d + `L${p(...points.at(-1))}`;
}

function loop(a) {
  const x = a.x + a.w / 2;
  return `M${p(x - 12, a.y)}C${p(x - 22, a.y - 26, x + 22, a.y - 26, x + 12, a.y)}`;
}
