// Keys. Components bind them while they are shown; the sheet lists what is bound.
import { html, useLayoutEffect, useRef } from "./lib.mjs";
import { isOpen, show } from "./dialog.mjs";

const bound = []; // newest last: a page's keys override the shell's keys
let prefix = "";
let prefixTimer = 0;

/**
 * useKeys binds keys while the component is shown.
 * @param {Record<string, [string, () => void]>} keys by name ("r", "g i", "Escape"): description and function
 * @param {string} group the heading in the sheet
 */
export function useKeys(keys, group = "This page") {
  const entry = useRef({ keys, group });
  entry.current.keys = keys;
  useLayoutEffect(() => {
    const e = entry.current;
    bound.push(e);
    return () => { bound.splice(bound.indexOf(e), 1); };
  }, []);
}

/** commands are all current key bindings, for the palette. */
export function commands() {
  const all = new Map();
  for (const { keys } of bound) {
    for (const [key, binding] of Object.entries(keys)) if (binding) all.set(key, { key, text: binding[0], run: binding[1] });
  }
  return [...all.values()];
}

const typing = (el) => el?.matches?.("input:not([type=checkbox]):not([type=range]):not([type=radio]), textarea, select, [contenteditable]");

/** start listens for keys. */
export function start() {
  document.addEventListener("keydown", (e) => {
    if (e.defaultPrevented || e.isComposing || isOpen()) return;
    const modified = e.ctrlKey || e.metaKey;
    if (e.altKey || (modified && e.key.toLowerCase() !== "k")) return;
    if (!modified && typing(e.target) && e.key !== "Escape") return;
    const name = modified ? "Ctrl K" : e.key;
    const run = find(prefix ? `${prefix} ${name}` : name);
    clearTimeout(prefixTimer);
    if (run) {
      prefix = "";
      e.preventDefault();
      run();
    } else if (!prefix && !modified && isPrefix(name)) {
      prefix = name;
      prefixTimer = setTimeout(() => { prefix = ""; }, 1500);
    } else prefix = "";
  });
}

function find(name) {
  for (let i = bound.length - 1; i >= 0; i--) if (bound[i].keys[name]) return bound[i].keys[name][1];
  return null;
}

const isPrefix = (name) => bound.some(({ keys }) => Object.keys(keys).some((k) => k.startsWith(name + " ")));

/** sheet shows all keys. */
export function sheet() {
  const groups = new Map();
  for (const { keys, group } of bound) {
    const rows = Object.entries(keys).filter(([, binding]) => binding).map(([key, [text]]) => ({ key, text }));
    if (rows.length) groups.set(group, [...(groups.get(group) ?? []), ...rows]);
  }
  show(({ close }) => html`<div class="keys">
    ${[...groups].reverse().map(([group, rows]) => html`<section><h3>${group}</h3><dl>
      ${rows.map(({ key, text }) => html`<div><dt>${key.split(" ").map((k) => html`<kbd>${k}</kbd> `)}</dt><dd>${text}</dd></div>`)}
    </dl></section>`)}
    <div class="buttons"><button autofocus onClick=${() => close()}>Close</button></div>
  </div>`, { title: "Keyboard", wide: true });
}
