// Lists: a page of rows at a time, newest first, kept fresh, never counted.
import { html, useState, useEffect, useRef, useId, cls } from "./lib.mjs";
import { useLive } from "./live.mjs";
import { alter, altered, route, go } from "./router.mjs";
import { useKeys } from "./keyboard.mjs";
import { Filter } from "./filter.mjs";
import { onMatching, onSelection, perform, usable } from "./action.mjs";
import { may } from "./me.mjs";
import { word, look, Icon } from "./status.mjs";
import { Failure, Heading } from "./parts.mjs";

const sizes = [50, 100, 200];

/**
 * List is a page with a list of rows. A spec has: kind, title, one, path, filters,
 * statuses, groups {name: statuses}, columns [{name, title, cell, cls}], href(row), id(row), actions,
 * bulk (the path of actions on many rows, or on all that match), create {label, open},
 * empty, every (ms), whole if there is only one page, detail(row) instead of href if a
 * row expands in place, and facets: false if the server has no values for its filters.
 */
export function List({ spec }) {
  const { query } = route.value;
  const names = Object.keys(spec.filters ?? {});
  const filter = Object.fromEntries(names.filter((n) => query.get(n)).map((n) => [n, query.get(n)]));
  const limit = sizes.includes(Number(query.get("limit"))) ? Number(query.get("limit")) : 50;
  const params = { ...filter, ...(spec.whole ? {} : { limit, cursor: query.get("cursor") }) };
  const { data, error, loading, refresh } = useLive(spec.path, params, { kinds: [spec.kind], every: spec.every });
  const rows = data?.data ?? [];
  const [chosen, setChosen] = useState(new Set());
  const selection = rows.filter((r) => chosen.has(spec.id(r)));
  useEffect(() => setChosen(new Set()), [JSON.stringify(filter), params.cursor]);
  const table = useRef(null);
  useListKeys({ spec, rows, table, selection, setChosen, data, refresh });
  const bar = { spec, rows, selection, chosen, setChosen, filter, refresh };
  return html`<section class="list">
    <${Heading} title=${spec.title} about=${spec.about}>
      ${spec.create && may(spec.create.role ?? "operator") && html`<button class="primary" data-action="create" onClick=${spec.create.open}>${spec.create.label}</button>`}
    <//>
    ${spec.statuses && html`<${Tabs} spec=${spec} current=${filter.status} />`}
    ${spec.filters && html`<${Filter} spec=${spec} rows=${rows} />`}
    ${spec.actions?.length > 0 && html`<${Bar} ...${bar} />`}
    <${Failure} error=${error} retry=${refresh} />
    <${Table} ...${{ spec, rows, chosen, setChosen, table, loading, refresh, empty: data && !rows.length }} />
    <${Pager} next=${data?.next_cursor} cursor=${params.cursor} limit=${limit} />
  </section>`;
}

function useListKeys({ spec, rows, table, selection, setChosen, data, refresh }) {
  const links = () => [...(table.current?.querySelectorAll("tbody [data-main]") ?? [])];
  const current = () => links().indexOf(document.activeElement?.closest?.("tr")?.querySelector("[data-main]"));
  const move = (by) => {
    const all = links();
    const at = current();
    all[Math.max(0, Math.min(all.length - 1, at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by))]?.focus();
  };
  const toggle = () => {
    const row = rows[current()];
    if (row) setChosen((chosen) => flip(chosen, spec.id(row)));
  };
  const keys = {
    j: ["Next row", () => move(1)],
    k: ["Previous row", () => move(-1)],
    "/": spec.filters && ["Filter", () => requestAnimationFrame(() => document.querySelector("[data-filter]")?.focus())],
    x: spec.actions?.length > 0 && ["Select the row", toggle],
    n: spec.create && [spec.create.label.replace("…", ""), spec.create.open],
    "]": data?.next_cursor && ["Older", () => alter({ cursor: data.next_cursor })],
    "[": ["Newest", () => alter({ cursor: "" })],
  };
  for (const action of spec.actions ?? []) {
    if (!action.key) continue;
    keys[action.key] = [action.label + " the row or the selection", () => {
      const row = rows[current()];
      if (selection.length) onSelection(action, selection, spec)?.then(refresh);
      else if (row && usable(action, row)) Promise.resolve(perform(action, row, spec.one)).then(refresh);
    }];
  }
  useKeys(keys);
}

function flip(set, id) {
  const next = new Set(set);
  if (!next.delete(id)) next.add(id);
  return next;
}

function Tabs({ spec, current = "" }) {
  const { data } = useLive("overview", {}, { kinds: [spec.kind], every: 5000 });
  const counts = data?.kinds?.find((k) => k.kind === spec.kind);
  const count = (status) => {
    const n = counts?.statuses?.[status];
    return n === undefined ? "" : n.toLocaleString() + (counts.capped?.includes(status) ? "+" : "");
  };
  return html`<nav class="tabs" aria-label="Status">
    ${["", ...spec.statuses].map((s) => html`<a key=${s} href=${altered({ status: s, cursor: "" })} aria-current=${s === current ? "page" : undefined} class=${s && "is-" + look(s)}>
      ${s && html`<${Icon} shape=${look(s)} />`}${s ? word(s) : "all"}${count(s) && html` <span class="count">${count(s)}</span>`}</a>`)}
  </nav>`;
}

function Bar({ spec, rows, selection, chosen, setChosen, filter, refresh }) {
  const actions = spec.actions.filter((a) => may(a.role ?? "operator") && !a.single);
  if (!actions.length) return null;
  const done = (result) => { if (result) setChosen(new Set()); refresh(); };
  const some = selection.length > 0;
  return html`<div class="bar" role="toolbar" aria-label="Actions">
    <label class="check"><input type="checkbox" checked=${some && selection.length === rows.length} indeterminate=${some && selection.length < rows.length}
      onChange=${() => setChosen(some ? new Set() : new Set(rows.map(spec.id)))} /> ${some ? `${selection.length} selected` : "Select"}</label>
    ${actions.map((a) => html`<button key=${a.name} class=${cls("small", a.danger && "danger")} data-bulk=${a.name} disabled=${!some}
      onClick=${() => onSelection(a, selection, spec)?.then(done)}>${a.label}</button>`)}
    ${spec.bulk && html`<span class="spread"></span><span class="muted">All matching rows:</span>
      ${actions.filter((a) => !a.some).map((a) => html`<button key=${a.name} class="small" data-all=${a.name}
        onClick=${() => onMatching(a, filter, spec)?.then(done)}>${a.label}…</button>`)}`}
  </div>`;
}

function Table({ spec, rows, chosen, setChosen, table, loading, refresh, empty }) {
  const pick = spec.actions?.some((a) => !a.single) && may("operator");
  if (empty) return html`<p class="empty">${spec.empty ?? "No rows."}</p>`;
  return html`<div class="scroll" aria-busy=${loading}><table ref=${table} class="rows" role="table">
    <caption class="away">${spec.title}</caption>
    <thead role="rowgroup"><tr role="row">
      ${pick && html`<th role="columnheader" class="pick"><span class="away">Select</span></th>`}
      ${spec.columns.map((c) => html`<th role="columnheader" scope="col" class=${c.cls}>${c.title}</th>`)}
    </tr></thead>
    <tbody role="rowgroup">${rows.map((row) => html`<${Row} key=${spec.id(row)} ...${{ spec, row, pick, chosen, setChosen, refresh }} />`)}</tbody>
  </table></div>`;
}

function Row({ spec, row, pick, chosen, setChosen, refresh }) {
  const id = spec.id(row);
  const [more, setMore] = useState(false);
  const below = useId();
  const open = (e) => {
    if (e.target.closest("a,button,input,label") || getSelection().toString()) return;
    if (spec.href) go(spec.href(row));
    else if (spec.detail) setMore(!more);
  };
  const main = (text) => {
    if (spec.href) return html`<a data-main href=${spec.href(row)}>${text}</a>`;
    if (spec.detail) return html`<button type="button" class="plain" data-main aria-expanded=${more} aria-controls=${more ? below : undefined} onClick=${() => setMore(!more)}>${text}</button>`;
    return text;
  };
  return html`<tr role="row" class=${cls(chosen.has(id) && "chosen", (spec.href || spec.detail) && "opens")} onClick=${open}>
    ${pick && html`<td role="cell" class="pick"><input type="checkbox" aria-label=${`Select ${spec.one} ${id}`} checked=${chosen.has(id)} onChange=${() => setChosen((chosen) => flip(chosen, id))} /></td>`}
    ${spec.columns.map((c, i) => html`<td role="cell" class=${c.cls} data-title=${c.title}>${i === 0 ? main(c.cell(row, refresh)) : c.cell(row, refresh)}</td>`)}
  </tr>
  ${more && html`<tr role="row" id=${below} class="more"><td role="cell" colspan=${spec.columns.length + (pick ? 1 : 0)}>${spec.detail(row)}</td></tr>`}`;
}

function Pager({ next, cursor, limit }) {
  if (!next && !cursor && limit === 50) return null;
  return html`<nav class="pager" aria-label="Rows">
    ${cursor && html`<button onClick=${() => alter({ cursor: "" })}>Newest</button>`}
    ${next && html`<button data-older onClick=${() => alter({ cursor: next })}>Older</button>`}
    <label>Rows <select value=${limit} onChange=${(e) => alter({ limit: e.target.value, cursor: "" })}>${sizes.map((n) => html`<option value=${n}>${n}</option>`)}</select></label>
  </nav>`;
}
