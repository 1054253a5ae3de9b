// The filter language: name:value, with quotes around values that contain spaces.

const token = /(?:([a-z_]+):)?(?:"((?:[^"\\]|\\.)*)"?|(\S+))/g;

/** parseFilter parses a filter into parameters, and returns the words without a name. */
export function parseFilter(text, names) {
  const params = {};
  const rest = [];
  for (const [whole, name, quoted, bare] of text.matchAll(token)) {
    const value = quoted !== undefined ? quoted.replace(/\\(.)/g, "$1") : bare;
    if (name && names.includes(name)) params[name] = value;
    else rest.push(whole);
  }
  return { params, rest };
}

/** formatFilter is the inverse of parseFilter. */
export function formatFilter(params, names) {
  return names.filter((n) => params[n]).map((n) => `${n}:${quote(params[n])}`).join(" ");
}

export const quote = (value) => (/[\s"]/.test(value) ? `"${value.replace(/["\\]/g, "\\$&")}"` : value);

/** wordAt returns the start and text of the word that ends at a position. */
export function wordAt(text, position) {
  let quoted = false;
  let start = 0;
  for (let i = 0; i < position; i++) {
    if (text[i] === '"') quoted = !quoted;
    else if (text[i] === " " && !quoted) start = i + 1;
  }
  return { start, word: text.slice(start, position) };
}
