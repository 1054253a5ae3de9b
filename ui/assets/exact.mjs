// JSON with integers beyond 2^53 kept exact, as BigInt.

const integer = /^-?\d+$/;

/** parse reads JSON. */
export function parse(text) {
  return JSON.parse(text, (key, value, context) =>
    typeof value === "number" && !Number.isSafeInteger(value) && integer.test(context?.source ?? "") ? BigInt(context.source) : value);
}

/** stringify is the inverse of parse. */
export function stringify(value, indent) {
  return JSON.stringify(value, (key, v) => {
    if (typeof v !== "bigint") return v;
    return JSON.rawJSON ? JSON.rawJSON(String(v)) : Number(v);
  }, indent);
}
