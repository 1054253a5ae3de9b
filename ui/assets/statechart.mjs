// Drawings of statecharts. The server lays them out; the dashboard highlights states.
import { html, useEffect, useRef, useState } from "./lib.mjs";
import { segment, text } from "./api.mjs";
import { readSVG } from "./svg.mjs";
import { span, tick } from "./time.mjs";
import { Failure } from "./parts.mjs";

/**
 * StatechartDrawing draws a statechart with highlighted states.
 * @param {{name: string, version?: number, active?: string[], before?: string[], timers?: {state?: string, due_at: string}[]}} props
 *   version: the newest by default; timers: countdowns at their states; before: the states before the last transition, to show which transition was taken
 */
export function StatechartDrawing({ name, version, active = [], before, timers = [] }) {
  const ref = useRef(null);
  const [svg, setSVG] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    const abort = new AbortController();
    text(`statecharts/${segment(name)}/drawing.svg`, { version }, abort.signal).then((read) => { setSVG(readSVG(read)); setError(null); },
      (e) => { if (e.name !== "AbortError") setError(e); });
    return () => abort.abort();
  }, [name, version]);
  useEffect(() => { if (svg) ref.current?.replaceChildren(svg); }, [svg]);
  useEffect(() => { if (svg) light(svg, active, before); }, [svg, active.join(), before?.join()]);
  useEffect(() => { if (svg) countDown(svg, timers, tick.peek()); }, [svg, timers, tick.value]);
  if (error) return html`<${Failure} error=${error} />`;
  return html`<div class="drawing machine" tabindex="0" role="group" aria-label=${`Drawing of ${name}. Active: ${active.join(", ") || "none"}.`} ref=${ref}></div>`;
}

function light(svg, active, before) {
  svg.setAttribute("aria-label", `States. Active: ${active.join(", ") || "none"}.`);
  const on = new Set(active), was = new Set(before ?? []);
  for (const g of svg.querySelectorAll("g[id^='state-']")) {
    const id = g.id.slice("state-".length);
    g.classList.toggle("lit", on.has(id));
    g.classList.toggle("left", was.has(id) && !on.has(id));
  }
  for (const path of svg.querySelectorAll("[data-from]")) {
    const { from, to } = path.dataset;
    path.classList.toggle("took", before !== undefined && was.has(from) && on.has(to) && (!on.has(from) || !was.has(to)));
  }
}

// countDown shows the remaining time of a timer above the corner of its state.
function countDown(svg, timers, now) {
  for (const old of svg.querySelectorAll(".timer")) old.remove();
  const next = new Map(); // the first timer of each state
  for (const t of timers) if (t.state && !(next.get(t.state) <= t.due_at)) next.set(t.state, t.due_at);
  for (const [state, due] of next) {
    const box = svg.querySelector(`#${CSS.escape("state-" + state)} > rect`);
    if (!box) continue;
    const text = document.createElementNS(svg.namespaceURI, "text");
    text.setAttribute("class", "timer");
    text.setAttribute("x", box.x.baseVal.value + box.width.baseVal.value);
    text.setAttribute("y", box.y.baseVal.value - 4);
    text.setAttribute("text-anchor", "end");
    text.append(`in ${span(Math.max(0, Date.parse(due) - now))}`);
    box.parentNode.append(text);
  }
}
