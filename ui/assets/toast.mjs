// Short messages about results, also for screen readers.
import { html, signal } from "./lib.mjs";
import { Icon } from "./status.mjs";

const shown = signal([]);
let next = 1;

/** say shows a message; how is "ok" or "bad". */
export function say(text, how = "ok") {
  const id = next++;
  shown.value = [...shown.value.slice(-3), { id, text, how }];
  setTimeout(() => dismiss(id), how === "bad" ? 12_000 : 5000);
}

/** fail shows an error. */
export const fail = (error) => { if (error?.name !== "AbortError") say(describe(error), "bad"); };

/** describe formats an error with the server's messages about parts of the request. */
export function describe(error) {
  const parts = (error.errors ?? []).map((e) => `${e.location}: ${e.message}`);
  return [error.message, ...parts].join(" · ");
}

const dismiss = (id) => { shown.value = shown.value.filter((t) => t.id !== id); };

/** Toasts renders the messages. */
export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">
    ${shown.value.map((t) => html`<div key=${t.id} class=${"toast is-" + t.how}>
      <${Icon} shape=${t.how} /><span>${t.text}</span>
      <button class="plain" aria-label="Dismiss" onClick=${() => dismiss(t.id)}><${Icon} shape="bad" /></button>
    </div>`)}
  </div>`;
}
