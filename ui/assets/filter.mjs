// The filter of a list: a line of text with completion, kept in the address.
import { html, useState, useEffect, useRef, useId, cls } from "./lib.mjs";
import { get } from "./api.mjs";
import { alter, route } from "./router.mjs";
import { parseFilter, formatFilter, quote, wordAt } from "./query.mjs";

const facets = new Map(); // kind → promise of the values of each field

function facetsOf(kind) {
  if (!facets.has(kind)) facets.set(kind, get(`facets/${kind}`).catch(() => ({})));
  return facets.get(kind);
}

/** Filter edits the parameters named in spec.filters. */
export function Filter({ spec, rows }) {
  const names = Object.keys(spec.filters);
  const fromAddress = formatFilter(Object.fromEntries(route.value.query), names);
  const [text, setText] = useState(fromAddress);
  const [values, setValues] = useState({});
  const [options, setOptions] = useState([]);
  const [at, setAt] = useState(-1);
  const [wrong, setWrong] = useState("");
  const input = useRef(null);
  const id = useId();
  const blank = Object.fromEntries(names.map((n) => [n, ""]));
  useEffect(() => setText(fromAddress), [fromAddress]);

  function complete(value) {
    const { word } = wordAt(value, input.current.selectionStart ?? value.length);
    setOptions(suggest(word, spec, values, rows));
    setAt(-1);
  }
  function accept(option) {
    const { start } = wordAt(text, input.current.selectionStart);
    const next = text.slice(0, start) + option + (option.endsWith(":") ? "" : " ");
    setText(next);
    setAt(-1);
    setOptions(option.endsWith(":") ? suggest(option, spec, values, rows) : []);
    input.current.focus();
  }
  function apply() {
    setOptions([]);
    const { params, rest } = parseFilter(text, names);
    setWrong(rest.length ? `Name the field of ${rest.join(" ")}: one of ${names.map((n) => n + ":").join(" ")}` : "");
    if (!rest.length) alter({ ...blank, ...params, cursor: "" });
  }
  function keys(e) {
    const move = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (move && options.length) setAt((at + move + options.length + (at < 0 && move < 0 ? 1 : 0)) % options.length);
    else if ((e.key === "Enter" || e.key === "Tab") && options[at]) accept(options[at]);
    else if (e.key === "Enter") apply();
    else if (e.key === "Escape" && options.length) setOptions([]);
    else if (e.key === "Escape") input.current.blur();
    else return;
    e.preventDefault();
  }
  const load = () => spec.facets !== false && facetsOf(spec.kind).then(setValues);
  return html`<div class="filter">
    <input ref=${input} data-filter type="text" role="combobox" autocomplete="off" spellcheck=${false}
      aria-label=${`Filter ${spec.title}`} aria-expanded=${options.length > 0} aria-controls=${id} aria-autocomplete="list" aria-invalid=${wrong !== ""} aria-describedby=${wrong ? id + "-wrong" : undefined}
      aria-activedescendant=${at >= 0 ? `${id}-${at}` : undefined}
      placeholder=${"Filter: " + names.slice(0, 3).map((n) => n + ":…").join(" ")} value=${text}
      onFocus=${load} onInput=${(e) => { setText(e.target.value); complete(e.target.value); }} onKeyDown=${keys} onBlur=${() => setTimeout(() => setOptions([]), 150)} />
    ${text && html`<button type="button" class="plain small" onClick=${() => { setText(""); setWrong(""); alter({ ...blank, cursor: "" }); }}>Clear</button>`}
    <ul id=${id} role="listbox" aria-label="Completions" hidden=${!options.length}>
      ${options.map((o, i) => html`<li key=${o} id=${`${id}-${i}`} role="option" aria-selected=${i === at} class=${cls(i === at && "on")}
        onMouseDown=${(e) => { e.preventDefault(); accept(o); }}>${o}${o.endsWith(":") && html` <span class="muted">${hint(spec.filters[o.slice(0, -1)])}</span>`}</li>`)}
    </ul>
    ${wrong && html`<p id=${id + "-wrong"} class="wrong" role="alert">${wrong}</p>`}
  </div>`;
}

const hint = (filter) => (Array.isArray(filter) ? filter.slice(0, 4).join(", ") + "…" : filter);

// suggest completes the name before the colon, or the value after it.
function suggest(word, spec, values, rows) {
  const [, name, start] = /^([a-z_]+):(.*)$/.exec(word) ?? [];
  if (!name) return Object.keys(spec.filters).filter((n) => n.startsWith(word)).map((n) => n + ":");
  const filter = spec.filters[name];
  if (filter === undefined) return [];
  const known = Array.isArray(filter) ? filter : values[name] ?? [...new Set(rows.map((r) => r[name]).filter((v) => typeof v === "string" && v))];
  const typed = start.replaceAll('"', "").toLowerCase();
  return known.filter((v) => v.toLowerCase().includes(typed)).slice(0, 12).map((v) => `${name}:${quote(v)}`);
}
