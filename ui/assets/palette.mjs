// The palette: search, pages and all commands of the page, by typing.
import { html, own, useEffect, useRef, useState, useId, cls } from "./lib.mjs";
import { get } from "./api.mjs";
import { show } from "./dialog.mjs";
import { commands } from "./keyboard.mjs";
import { go, link } from "./router.mjs";

const wait = 120;

/** address is the page of a search result. */
export function address({ kind, id }) {
  const page = own({ instance: "instances", hook: "hooks", task: "tasks", alarm: "alarms", actor: "actors", statechart: "statecharts", definition: "definitions", schedule: "schedules", node: "nodes" }, kind) ?? kind;
  if (page === "consumers") return link(["outbox"]);
  if (page === "schedules" || page === "nodes") return link([page]);
  return link(page === "actors" ? [page, ...split(id)] : [page, id]);
}

function split(id) {
  const at = id.indexOf("/");
  return at < 0 ? [id] : [id.slice(0, at), id.slice(at + 1)];
}

/** palette opens the palette. */
export function palette() {
  const all = commands().filter((c) => c.key !== "Ctrl K" && c.key !== "Escape");
  show(({ close }) => html`<${Palette} all=${all} close=${close} />`, { title: "Search and commands", wide: true });
}

function useSearch(text) {
  const [found, setFound] = useState([]);
  useEffect(() => {
    if (text.trim().length < 2) { setFound([]); return; }
    const abort = new AbortController();
    const timer = setTimeout(() => get("search", { q: text.trim() }, abort.signal).then((r) => setFound(r.data ?? []), () => setFound([])), wait);
    return () => { clearTimeout(timer); abort.abort(); };
  }, [text]);
  return found;
}

function Palette({ all, close }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const list = useRef(null);
  const id = useId();
  const found = useSearch(text);
  const words = text.toLowerCase().split(/\s+/);
  const rows = [
    ...all.filter((c) => words.every((w) => c.text.toLowerCase().includes(w))).map((c) => ({ title: c.text, detail: c.key, run: c.run, isKey: true })),
    ...found.map((f) => ({ title: f.title || f.id, detail: [f.kind, f.detail].filter(Boolean).join(" · "), run: () => go(address(f)) })),
  ].slice(0, 60);
  useEffect(() => setAt(0), [text]);
  useEffect(() => { list.current?.querySelector(".on")?.scrollIntoView({ block: "nearest" }); }, [at]);
  const run = (row) => { close(); row?.run(); };
  function keys(e) {
    const move = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (move) setAt((at + move + rows.length) % Math.max(1, rows.length));
    else if (e.key === "Enter") run(rows[at]);
    else return;
    e.preventDefault();
  }
  return html`<div class="palette">
    <input type="text" autofocus role="combobox" aria-expanded="true" aria-controls=${id} aria-activedescendant=${rows.length ? `${id}-${at}` : undefined}
      aria-label="Search and commands" placeholder="An id, a name, an error or a command" value=${text} onInput=${(e) => setText(e.target.value)} onKeyDown=${keys} />
    <ul id=${id} role="listbox" aria-label="Results" ref=${list}>
      ${rows.map((r, i) => html`<li key=${i} id=${`${id}-${i}`} role="option" aria-selected=${i === at} class=${cls(i === at && "on")} onClick=${() => run(r)}>
        <span>${r.title}</span>${r.isKey ? html`<kbd>${r.detail}</kbd>` : html`<span class="muted">${r.detail}</span>`}</li>`)}
      ${!rows.length && html`<li role="option" aria-disabled="true" aria-selected="false" class="muted">No results</li>`}
    </ul>
  </div>`;
}
