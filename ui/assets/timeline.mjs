// A timeline of entries with their durations, and a slider to go back through
// them.
import { html, cls, own, useRef } from "./lib.mjs";
import { useKeys } from "./keyboard.mjs";
import { absolute, span, took } from "./time.mjs";
import { ErrorText } from "./parts.mjs";
import { Icon } from "./status.mjs";

const looks = { failed: "bad", quarantined: "jail", cancelled: "off", deadline: "wait", due: "wait", created: "ok", error: "bad", crash: "jail", stop: "off", done: "ok", await: "wait", spawn: "due", replay: "wait", next: "due", running: "due" };

/**
 * Timeline shows entries {at, duration_ms, title, how, text, error} as a waterfall.
 * current is the marked entry; onPick selects an entry; newest puts the last entry first.
 */
export function Timeline({ entries, current, onPick, newest = false }) {
  if (!entries.length) return html`<p class="muted">No entries.</p>`;
  const times = entries.map((e) => Date.parse(e.at));
  const start = Math.min(...times);
  const end = Math.max(...entries.map((e, i) => times[i] + (e.duration_ms ?? 0)), start + 1);
  const share = (ms) => `${((ms / (end - start)) * 100).toFixed(2)}%`;
  const order = entries.map((e, i) => [e, i]);
  if (newest) order.reverse();
  return html`<ol class="timeline" reversed=${newest}>
    ${order.map(([e, i]) => html`<li key=${i} class=${cls(i === current && "on", current !== undefined && i > current && "later")}>
      <button type="button" class="plain entry" aria-current=${i === current ? "step" : undefined} onClick=${() => onPick?.(i)}>
        <span class=${"mark is-" + (own(looks, e.how) ?? "due")}><${Icon} shape=${own(looks, e.how) ?? "due"} /></span>
        <span class="what"><b>${e.title}</b> ${e.text && html`<span class="muted">${e.text}</span>`}</span>
        <span class="took" title=${absolute(times[i])}>${e.duration_ms === undefined || e.duration_ms === null ? "+" + span(times[i] - start) : took(e.duration_ms)}</span>
        <span class="track" aria-hidden="true"><i style=${{ left: share(Math.min(times[i] - start, end - start)), width: `max(3px, ${share(e.duration_ms ?? 0)})` }}></i></span>
      </button>
      <${ErrorText} text=${e.error} />
    </li>`)}
  </ol>`;
}

/** Scrubber is a slider through n entries. */
export function Scrubber({ n, at, set, text }) {
  const here = useRef(at); // keys may arrive faster than the page is rendered
  here.current = at;
  const to = (i) => set((here.current = Math.max(0, Math.min(n - 1, i))));
  useKeys({
    "[": n > 1 && ["Previous entry", () => to(here.current - 1)],
    "]": n > 1 && ["Next entry", () => to(here.current + 1)],
  }, "History");
  if (n < 2) return null;
  return html`<div class="scrubber">
    <button type="button" class="small" aria-label="Previous entry" disabled=${at <= 0} onClick=${() => to(at - 1)}>◀</button>
    <input type="range" min="0" max=${n - 1} value=${at} aria-label="History" aria-valuetext=${text} onInput=${(e) => to(Number(e.target.value))} />
    <button type="button" class="small" aria-label="Next entry" disabled=${at >= n - 1} onClick=${() => to(at + 1)}>▶</button>
    <output>${at + 1} of ${n} <span class="muted">${text}</span></output>
  </div>`;
}
