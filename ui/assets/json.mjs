// JSON as a collapsible tree of text nodes only.
import { html, useState } from "./lib.mjs";
import { stringify } from "./exact.mjs";
import { Copy } from "./copy.mjs";

const most = 200; // members of a level that are shown initially

/** JSONView shows a value. */
export function JSONView({ value, open = 3, label = "JSON" }) {
  if (value === undefined) return html`<p class="muted">none</p>`;
  return html`<div class="json" role="group" aria-label=${label} tabindex="0">
    <div class="json-copy"><${Copy} text=${stringify(value, 2)} /></div>
    <${Node} value=${value} open=${open} />
  </div>`;
}

function Node({ name, value, open, last = true }) {
  const key = name === undefined ? null : html`<span class="json-key">${typeof name === "number" ? "" : stringify(name) + ": "}</span>`;
  const comma = last ? "" : ",";
  if (value === null || typeof value !== "object") {
    return html`<div class="json-line">${key}<span class=${"json-" + (value === null ? "null" : typeof value)}>${stringify(value)}</span>${comma}</div>`;
  }
  const entries = Array.isArray(value) ? value.map((v, i) => [i, v]) : Object.entries(value);
  const [left, right] = Array.isArray(value) ? "[]" : "{}";
  if (!entries.length) return html`<div class="json-line">${key}${left}${right}${comma}</div>`;
  return html`<${Branch} ...${{ k: key, entries, left, right, comma, open }} />`;
}

function Branch({ k, entries, left, right, comma, open }) {
  const [all, setAll] = useState(false);
  const shown = all ? entries : entries.slice(0, most);
  return html`<details open=${open > 0}>
    <summary>${k}${left}<span class="json-fold"> ${entries.length} ${right}${comma}</span></summary>
    <div class="json-level">
      ${shown.map(([name, v], i) => html`<${Node} key=${name} name=${name} value=${v} open=${open - 1} last=${i === entries.length - 1} />`)}
      ${shown.length < entries.length && html`<button class="plain small" onClick=${() => setAll(true)}>show ${entries.length - most} more</button>`}
    </div>
    <div class="json-line">${right}${comma}</div>
  </details>`;
}
