// The verdict: the problems that need an operator, on top of the overview, with the next
// action of each. Their numbers are in the navigation and in the title of the window.
import { html, own, signal, useEffect } from "./lib.mjs";
import { del, post, put, segment } from "./api.mjs";
import { useLive } from "./live.mjs";
import { link } from "./router.mjs";
import { confirmed } from "./action.mjs";
import { may } from "./me.mjs";
import { say } from "./toast.mjs";
import { counts } from "./parts.mjs";
import { Icon } from "./status.mjs";
import { When } from "./time.mjs";

/** verdict is the last verdict of the server, or null. */
export const verdict = signal(null);

let refresh = () => {};

/** useVerdict keeps the verdict fresh. The frame of the window calls it once. */
export function useVerdict() {
  const live = useLive("verdict", {}, { kinds: ["dead", "instances", "hooks", "tasks", "alarms", "nodes"], every: 5000 });
  refresh = live.refresh;
  useEffect(() => {
    verdict.value = live.data;
    counts.value = live.data ? live.data.failing + live.data.dead : 0;
  }, [live.data]);
}

/** Badge shows the number of dead letters or of failing work next to a page of the navigation. */
export function Badge({ page }) {
  const v = verdict.value;
  const [n, text] = own({ "": [v?.failing, "failing"], dead: [v?.dead, "dead letters"] }, page) ?? [];
  if (!n) return null;
  return html`<span class="badge">${n.toLocaleString()}${v.capped && n >= 1000 ? "+" : ""}<span class="away"> ${text}</span></span>`;
}

/** Verdict shows the problems, or that there is none. */
export function Verdict() {
  const v = verdict.value;
  if (!v) return null;
  if (v.ok) return html`<section class="verdict fine" aria-label="Problems"><p class="is-ok"><${Icon} shape="ok" /> No problems: no work is failing, and all due work is served.</p></section>`;
  const paused = new Set(v.problems.filter((p) => p.what === "paused").map((p) => p.name));
  return html`<section class="verdict" aria-label="Problems"><ul>${v.problems.map((p) => html`<li key=${[p.what, p.kind, p.namespace, p.queue, p.name, p.group, p.detail].join(" ")} data-problem=${p.what} class=${"is-" + (own(shapes, p.what) ?? "odd")}>
    <${Icon} shape=${own(shapes, p.what) ?? "odd"} /><p>${sentence(p)}</p><${Next} of=${p} paused=${paused.has(p.pause)} /></li>`)}</ul></section>`;
}

const shapes = { failing: "again", dead: "bad", unserved: "odd", paused: "pause", horizon: "odd" };

const single = { instances: "instance", hooks: "hook", tasks: "task", alarms: "alarm", actors: "actor", consumers: "entry", schedules: "schedule" };

function sentence(p) {
  const n = `${(p.count ?? 0).toLocaleString()}${p.capped ? "+" : ""} ${p.what === "dead" ? "dead " : ""}${p.count === 1 && !p.capped ? own(single, p.kind) ?? p.kind : p.kind}`;
  const since = p.since && html` since <${When} at=${p.since} />`;
  const error = html` <code>${String(p.error ?? "").split("\n")[0] || "no error"}</code>`;
  const name = html`<b>${[p.namespace, p.name].filter(Boolean).join("/")}</b>`;
  switch (p.what) {
    case "failing": return html`${name}: ${n} failing${since}:${error}`;
    case "dead": return html`${name}: ${n}, the last <${When} at=${p.last_at} />:${error}`;
    case "unserved": return html`<b>${[p.queue, p.name].filter(Boolean).join(" ")}</b>: ${p.detail?.startsWith("schedule ") ? `${p.detail} starts work that no process serves` : html`${n} due${since}, and no process serves the ${p.detail}`}`;
    case "paused": return html`${name} is paused${since}${p.detail && ` (${p.detail})`}`;
    default: return html`${name} keeps ${(p.count ?? 0).toLocaleString()} deleted rows${since}${p.detail && ` (${p.detail})`}`;
  }
}

// Next offers the next actions for a problem.
function Next({ of: p, paused }) {
  const act = may("operator");
  const bulk = p.what === "failing" && own(lists, p.kind);
  return html`<div class="actions">
    ${act && p.what === "failing" && p.pause && !paused && html`<button class="small" data-action="pause" onClick=${() => pause(p)}>Pause ${p.pause}…</button>`}
    ${act && bulk && html`<button class="small" data-action="run" onClick=${() => runNow(p)}>Run now…</button>`}
    ${act && p.what === "paused" && html`<button class="small" data-action="resume" onClick=${() => resume(p)}>Resume…</button>`}
    ${where(p) && html`<a class="button small" href=${where(p)}>Open</a>`}
  </div>`;
}

// lists has the filter of the list of a kind for a group of failing work.
const lists = {
  instances: (p) => ({ definition: p.name }), hooks: (p) => ({ namespace: p.namespace, name: p.name }), tasks: (p) => ({ type: p.name }), alarms: (p) => ({ type: p.name }),
};

function where(p) {
  if (p.what === "failing" && own(lists, p.kind)) return link([p.kind], { ...lists[p.kind](p), status: "retrying" });
  if (p.what === "dead") return link(["dead"], { kind: p.kind });
  if (p.what === "unserved") return link([p.kind], p.kind === "instances" ? { queue: p.queue } : {});
  return "";
}

const pause = (p) => confirmed({
  title: `Pause ${p.pause}?`, text: "No process claims this work until it is resumed. Nothing fails or is lost. Attempts that run now finish.", confirm: "Pause",
  act: (why) => put(`pauses/${segment(p.pause)}`, { reason: why?.trim() || String(p.error ?? "").split("\n")[0].slice(0, 200) }).then(() => { say(`Paused ${p.pause}`); refresh(); }),
});

const resume = (p) => confirmed({
  title: `Resume ${p.name}?`, text: "Processes claim this work again. Due work runs immediately.", confirm: "Resume",
  act: () => del(`pauses/${segment(p.name)}`).then(() => { say(`Resumed ${p.name}`); refresh(); }),
});

const runNow = (p) => confirmed({
  title: `Run ${p.kind} of ${p.name} now?`, text: "The work that waits for another attempt becomes due now. Attempts are counted as usual.", confirm: "Run now",
  act: async () => {
    const result = await post(`${p.kind}/actions`, { action: p.kind === "alarms" ? "fire" : "run", filter: { ...lists[p.kind](p), status: ["retrying"] } });
    say(`Run now: ${result.done.toLocaleString()} ${p.kind}`);
    refresh();
  },
});
