// Reads the drawings of the server. Nodes are created one by one, and only the elements
// that a drawing needs: the browser never parses the text as markup.

const space = "http://www.w3.org/2000/svg";
const elements = new Set(["svg", "g", "rect", "path", "circle", "text", "title", "defs", "marker"]);
const attributes = new Set(["x", "y", "width", "height", "rx", "cx", "cy", "r", "d", "class", "id", "viewBox", "refX", "refY", "markerWidth", "markerUnits",
  "markerHeight", "orient", "marker-end", "text-anchor", "data-from", "data-to"]);

const token = /<(\/?)([A-Za-z]+)((?:\s+[\w:-]+="[^"]*")*)\s*(\/?)>|([^<]+)/g;
const entities = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

const decode = (text) => text.replace(/&(?:#(\d+)|#x([\da-f]+)|(\w+));/gi, (whole, decimal, hex, name) =>
  decimal ? String.fromCodePoint(Number(decimal)) : hex ? String.fromCodePoint(parseInt(hex, 16)) : entities[name] ?? whole);

// harmless reports whether an id or a reference is one that drawings use.
const harmless = (name, value) => (name === "id" ? /^(state-|arrow$)/.test(value) : name !== "marker-end" || value === "url(#arrow)");

function element(name, text) {
  const node = document.createElementNS(space, name);
  for (const [, attribute, value] of text.matchAll(/([\w:-]+)="([^"]*)"/g)) {
    const plain = decode(value);
    if (attributes.has(attribute) && harmless(attribute, plain)) node.setAttribute(attribute, plain);
  }
  return node;
}

/** readSVG returns the <svg> of a text, or null. */
export function readSVG(text) {
  const stack = [];
  let root = null;
  for (const [, closing, name, rest, alone, plain] of text.matchAll(token)) {
    const inside = stack.at(-1);
    if (plain !== undefined) inside?.append(decode(plain));
    else if (closing) stack.pop();
    else {
      // Elements that are not allowed are parsed too, to find their end, but are dropped.
      const node = elements.has(name) ? element(name, rest) : document.createDocumentFragment();
      if (inside && elements.has(name)) inside.append(node);
      root ??= name === "svg" ? node : null;
      if (!alone) stack.push(node);
    }
  }
  return root;
}
