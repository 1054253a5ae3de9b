// Drawings of state machines.
import { html, useMemo, cls } from "./lib.mjs";
import { layout } from "./graph.mjs";

/**
 * StepGraph draws the steps of a definition.
 * @param {{version: object, active?: string, bad?: boolean, taken?: Map<string, number>, visits?: Map<string, number>, last?: string}} props
 *   taken: the number of times that each edge ("from→to") was taken; last: the edge taken last
 */
export function StepGraph({ version, active, bad, taken = new Map(), visits = new Map(), last }) {
  const steps = useMemo(() => stepNames(version), [version]);
  const edges = useMemo(() => complete(steps, version.edges ?? [], taken), [version, taken.size]);
  const plan = useMemo(() => steps.length && layout(steps, edges, version.first_step ?? steps[0]), [steps, edges]);
  if (!steps.length) return html`<p class="muted">No steps.</p>`;
  const spoken = `Steps: ${steps.join(", ")}.${active ? ` Current: ${active}.` : ""}`;
  return html`<div class="drawing" tabindex="0" role="group" aria-label="Drawing of the steps"><svg width=${plan.width} height=${plan.height} viewBox=${`0 0 ${plan.width} ${plan.height}`} role="img" aria-label=${spoken}>
    ${plan.edges.filter((e) => !e.hidden).map((e) => html`<${Edge} key=${e.from + "→" + e.to} edge=${e} count=${taken.get(`${e.from}→${e.to}`)} last=${last === `${e.from}→${e.to}`} />`)}
    ${[...plan.nodes].map(([name, box]) => html`<${Box} key=${name} ...${{ name, box, on: name === active, bad, visits: visits.get(name) }} />`)}
  </svg></div>`;
}

/** stepNames are the names of the steps of a version, in their order. */
export const stepNames = (version) => (version?.steps ?? []).map((s) => s.name ?? s);

// complete adds edges that were taken but not declared. It also adds hidden edges to
// steps without edges, so that each comes after the step before it.
function complete(steps, declared, taken) {
  const all = new Map(declared.map((e) => [`${e.from}→${e.to}`, e]));
  for (const key of taken.keys()) {
    const [from, to] = key.split("→");
    if (!all.has(key) && steps.includes(from) && steps.includes(to)) all.set(key, { from, to });
  }
  const joined = new Set([...all.values()].flatMap((e) => [e.from, e.to]));
  const loose = steps.map((to, i) => ({ from: steps[i - 1], to, hidden: true })).filter(({ from, to }) => from && !joined.has(to));
  return [...all.values(), ...loose];
}

function Edge({ edge, count, last }) {
  const a = edge.arrow;
  return html`<g class=${cls("edge", count && "taken", last && "last")}>
    <path class="way" d=${edge.path} />
    ${a && html`<path class="head" d="M0 0-9-4v8z" transform=${`translate(${a.x} ${a.y}) rotate(${a.angle})`} />`}
    ${count > 1 && html`<text x=${edge.label.x} y=${edge.label.y} text-anchor="middle">${count}×</text>`}
  </g>`;
}

function Box({ name, box, on, bad, visits }) {
  return html`<g class=${cls("box", on && "on", on && bad && "bad", visits && "seen")}>
    <rect x=${box.x} y=${box.y} width=${box.w} height=${box.h} rx="8" />
    <text x=${box.x + box.w / 2} y=${box.y + box.h / 2 + 4.5} text-anchor="middle">${name}</text>
    ${on && html`<circle cx=${box.x + box.w - 7} cy=${box.y + 7} r="3.5" />`}
  </g>`;
}
