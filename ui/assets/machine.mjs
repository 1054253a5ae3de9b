// Drawings of statecharts. The server lays them out; here they are lit.
import { html, useEffect, useRef, useState } from "./lib.mjs";
import { segment, text } from "./api.mjs";
import { readSVG } from "./svg.mjs";
import { Failure } from "./parts.mjs";

/**
 * MachineDrawing draws a machine with states lit.
 * @param {{name: string, version?: number, active?: string[], before?: string[]}} props
 *   before: the states before the last transition, to show which was taken
 */
export function MachineDrawing({ name, version, active = [], before }) {
  const ref = useRef(null);
  const [svg, setSVG] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    const abort = new AbortController();
    text(`machines/${segment(name)}/drawing.svg`, { version }, abort.signal).then((read) => { setSVG(readSVG(read)); setError(null); },
      (e) => { if (e.name !== "AbortError") setError(e); });
    return () => abort.abort();
  }, [name, version]);
  useEffect(() => { if (svg) ref.current?.replaceChildren(svg); }, [svg]);
  useEffect(() => { if (svg) light(svg, active, before); }, [svg, active.join(), before?.join()]);
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
