// Charts of a few hundred points, drawn as SVG so that style sheets color them.
import { html, useState, useLayoutEffect, useRef } from "./lib.mjs";
import { hourText } from "./time.mjs";

const height = 132;
const pad = { left: 44, right: 8, top: 8, bottom: 20 };

function useWidth() {
  const ref = useRef(null);
  const [width, setWidth] = useState(480);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.max(160, Math.round(entry.contentRect.width))));
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}

const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });

/** nice returns a round number that is not below n. */
function nice(n) {
  if (n <= 0) return 1;
  const size = 10 ** Math.floor(Math.log10(n));
  return [1, 2, 2.5, 5, 10].map((f) => f * size).find((v) => v >= n);
}

/**
 * Chart draws lines over time. lines: [{name, values}]; from: ms; step: ms; unit: text after a value; bad: the line counts failures.
 */
export function Chart({ title, lines, from, step, unit = "", bad = false }) {
  const [ref, width] = useWidth();
  const [at, setAt] = useState(-1);
  const n = Math.max(0, ...lines.map((l) => l.values.length));
  const most = nice(lines.reduce((m, l) => l.values.reduce((a, v) => Math.max(a, v ?? 0), m), 0));
  const x = (i) => pad.left + (n < 2 ? 0 : (i / (n - 1)) * (width - pad.left - pad.right));
  const y = (v) => height - pad.bottom - (v / most) * (height - pad.top - pad.bottom);
  const shown = at >= 0 && at < n ? at : n - 1;
  const move = (e) => {
    const box = e.currentTarget.getBoundingClientRect();
    setAt(Math.max(0, Math.min(n - 1, Math.round(((e.clientX - box.left - pad.left) / (width - pad.left - pad.right)) * (n - 1)))));
  };
  const last = lines.map((l) => `${l.name} ${compact.format(l.values.at(-1) ?? 0)}${unit}`).join(", ");
  return html`<figure class=${bad ? "chart bad" : "chart"} ref=${ref}>
    <figcaption><span>${title}</span><span class="legend">${lines.map((l, i) => html`<span key=${l.name} class=${"line-" + i}>${l.name} <b>${compact.format(l.values[shown] ?? 0)}${unit}</b></span>`)}</span></figcaption>
    <svg width=${width} height=${height} role="img" aria-label=${`${title}, now: ${last}`} onPointerMove=${move} onPointerLeave=${() => setAt(-1)}>
      ${[0, 0.5, 1].map((f) => html`<g key=${f}><line class="grid" x1=${pad.left} x2=${width - pad.right} y1=${y(f * most)} y2=${y(f * most)} /><text x=${pad.left - 6} y=${y(f * most) + 3.5} text-anchor="end">${compact.format(f * most)}</text></g>`)}
      ${n > 1 && ticks(n, from, step, width).map(({ i, text }) => html`<text key=${i} x=${x(i)} y=${height - 5} text-anchor="middle">${text}</text>`)}
      ${lines.map((l, i) => html`<path key=${l.name} class=${"line line-" + i} d=${path(l.values, x, y)} />`)}
      ${at >= 0 && html`<line class="cross" x1=${x(shown)} x2=${x(shown)} y1=${pad.top} y2=${height - pad.bottom} />`}
      ${at >= 0 && html`<text class="cross-at" x=${Math.min(width - 24, Math.max(pad.left + 20, x(shown)))} y=${pad.top + 4} text-anchor="middle">${hourText(from + shown * step)}</text>`}
    </svg>
  </figure>`;
}

function path(values, x, y) {
  let d = "";
  let pen = "M";
  values.forEach((v, i) => {
    if (v === null || v === undefined) { pen = "M"; return; }
    d += `${pen}${x(i).toFixed(1)} ${y(v).toFixed(1)}`;
    pen = "L";
  });
  return d || "M0 0";
}

function ticks(n, from, step, width) {
  const count = Math.max(2, Math.min(6, Math.floor(width / 90)));
  return Array.from({ length: count }, (_, k) => Math.round(((k + 0.5) / count) * (n - 1))).map((i) => ({ i, text: hourText(from + i * step) }));
}

/** Spark is a small line without axes. */
export function Spark({ values = [], label }) {
  const most = Math.max(1, ...values);
  const x = (i) => (i / Math.max(1, values.length - 1)) * 88 + 1;
  const y = (v) => 21 - (v / most) * 19;
  return html`<svg class="spark" viewBox="0 0 90 24" width="90" height="24" role="img" aria-label=${label ?? `up to ${most}`}><path d=${path(values, x, y)} /></svg>`;
}
