// Small parts of pages.
import { html, signal, useEffect } from "./lib.mjs";
import { title as product } from "./api.mjs";
import { describe } from "./toast.mjs";
import { Icon } from "./status.mjs";

/** counts is the number of problems, which the title of the window begins with. */
export const counts = signal(0);

/** Heading shows the title of a page, and sets the window's title. */
export function Heading({ title, kind, about, children }) {
  const n = counts.value;
  useEffect(() => { document.title = `${n ? `(${n.toLocaleString()}) ` : ""}${title} · ${product}`; }, [title, n]);
  return html`<header class="heading">
    <div><h1 tabindex="-1">${kind && html`<span class="muted">${kind} </span>`}${title}</h1>${about && html`<p class="muted">${about}</p>`}</div>
    <div class="actions">${children}</div>
  </header>`;
}

/** Failure shows an error, with a retry button. */
export function Failure({ error, retry }) {
  if (!error) return null;
  return html`<div class="failure" role="alert"><${Icon} shape="bad" /><span>${describe(error)}${error.status === 404 && " · Finished work is removed after its retention time."}</span>
    ${retry && html`<button class="small" onClick=${retry}>Try again</button>`}</div>`;
}

/** Panel is a titled part of a page. */
export function Panel({ title, actions, children, cls = "" }) {
  return html`<section class=${"panel " + cls}><header><h2>${title}</h2>${actions}</header>${children}</section>`;
}

/** Facts shows names with values; names without a value are omitted. */
export function Facts({ of }) {
  return html`<dl class="facts">${Object.entries(of).filter(([, v]) => v !== undefined && v !== null && v !== "" && v !== false)
    .map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** ErrorText shows the first line of an error, and the rest (its stack) on request. */
export function ErrorText({ text, open = false }) {
  if (!text) return null;
  const [first, ...rest] = String(text).split("\n");
  if (!rest.length) return html`<pre class="error">${first}</pre>`;
  return html`<details class="error" open=${open}><summary>${first}</summary><pre tabindex="0">${rest.join("\n")}</pre></details>`;
}

/** Table is a plain table of rows: columns are [title, cell(row)]. On a phone it is "labelled" by its titles, or "stacked". of is the resource that supplies the rows. */
export function Table({ title, columns, rows, keyOf, empty = "None.", cls = "", of }) {
  if (of?.loading && !of.data) return html`<p class="muted" aria-busy="true">Loading…</p>`;
  if (!rows?.length) return html`<p class="muted">${empty}</p>`;
  return html`<div class="scroll"><table class=${"rows " + cls} role="table"><caption class="away">${title}</caption>
    <thead role="rowgroup"><tr role="row">${columns.map(([name]) => html`<th role="columnheader" scope="col">${name || html`<span class="away">Actions</span>`}</th>`)}</tr></thead>
    <tbody role="rowgroup">${rows.map((row, i) => html`<tr role="row" key=${keyOf?.(row) ?? i}>${columns.map(([name, cell]) => html`<td role="cell" data-title=${name}>${cell(row)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

/** Loading is shown while data is being read. */
export const Loading = () => html`<p class="empty" aria-busy="true">Loading…</p>`;
