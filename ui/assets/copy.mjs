// Copying to the clipboard, also over plain HTTP.
import { html, useState } from "./lib.mjs";
import { fail } from "./toast.mjs";

async function copy(text) {
  if (navigator.clipboard && isSecureContext) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "away";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("The browser refused access to the clipboard.");
}

/** Copy is a button that copies a text. */
export function Copy({ text, label = "Copy" }) {
  const [done, setDone] = useState(false);
  const run = () => copy(text).then(() => {
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  }).catch(fail);
  return html`<button type="button" class="plain small" onClick=${run} aria-label=${`${label}: ${text.slice(0, 60)}`}>${done ? "Copied" : label}</button>`;
}

const made = /^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[A-Z2-7]{26})$/; // generated ids, which need not be readable

/** shorten returns a part of an id: the end of a UUID, because UUIDs of the same time start with the same characters. */
export const shorten = (text) => (made.test(text) ? "…" + text.slice(-8) : text.length > 26 ? text.slice(0, 24) + "…" : text);

/** Short shows a part of an id. */
export function Short({ id }) {
  const text = String(id ?? "");
  const part = shorten(text);
  return html`<code class="short" title=${part === text ? undefined : text}>${part}</code>`;
}

/** ID shows an id that can be copied. */
export function ID({ id }) {
  return html`<span class="id"><code>${id}</code><${Copy} text=${String(id)} /></span>`;
}
