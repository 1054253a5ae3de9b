// A point in the history of an instance: the step that ran there, and the events until
// the next step.
import { html, own } from "../lib.mjs";
import { link } from "../router.mjs";
import { Short } from "../copy.mjs";
import { exact, took } from "../time.mjs";
import { ErrorText, Facts } from "../parts.mjs";

const ends = new Set(["next", "replay", "await", "spawn", "done", "stop", "fail", "rerun", "cancel"]);
const others = new Set(["created", "error", "crash"]);

/** pointsOf returns the entries of a history that are steps of the path, without signals and children. */
export const pointsOf = (history) => history.filter((e) => others.has(e.outcome) || isEnd(e));

/** isEnd reports whether an entry is the end of a step that ran, not a line about the current step. */
export const isEnd = (e) => ends.has(e.outcome) && e.duration_ms !== undefined && e.duration_ms !== null;

/** stepAt is the step that is highlighted at a point. */
export const stepAt = (e, first) => (e.outcome === "created" ? first : e.next || e.step);

/** failedRun reports whether an entry is a run that failed and is tried again. */
export const failedRun = (e) => e.outcome === "error" || e.outcome === "replay" && Boolean(e.error);

/** pointText is a short description of a point. */
export function pointText(e) {
  if (!e) return "";
  if (e.outcome === "created") return "started";
  return e.next && e.next !== e.step ? `${e.step} → ${e.next}` : `${e.step}: ${failedRun(e) ? "failed" : e.outcome}`;
}

const words = {
  created: () => "was started",
  next: (e) => `continued with ${e.next}`,
  replay: (e) => (e.error ? "failed, and is tried again" : "requested another run"),
  await: (e) => `waits for a signal${e.next ? `, then continues with ${e.next}` : ""}`,
  spawn: (e) => `started children${e.next ? `, and continues with ${e.next} when they have finished` : ""}`,
  done: () => "finished the instance as done",
  stop: () => "finished the instance as stopped",
  fail: () => "failed permanently: the instance is failed",
  rerun: () => "runs again, because signals arrived during its last run",
  cancel: (e) => `was cancelled${e.next ? `, and continues with ${e.next}` : ""}`,
  error: () => "failed",
  crash: () => "crashed",
};

/** Unkept shows a note if steps ran that were not recorded. */
export function Unkept({ entries, instance, first }) {
  if (entries.some(isEnd) || !instance.finished_at && instance.step === first) return null;
  return html`<p class="muted">Only failed steps are recorded. Define the state machine with KeepHistory to record all steps.</p>`;
}

/** Point shows one entry; history has all entries, last is true at the newest one. */
export function Point({ at, history, next, instance, last }) {
  if (!at) return null;
  const from = history.indexOf(at), to = next ? history.indexOf(next) : history.length;
  const between = history.slice(from + 1, to).filter((e) => e.outcome === "signal" || e.outcome === "child");
  const waits = last && instance.awaits?.length > 0 && instance.awaits.join(" or ");
  return html`<div class="point" role="group" aria-label="At this point">
    <${Facts} of=${{
      [at.step ? "Step" : "Instance"]: html`${at.step && html`<b>${at.step}</b> `}${own(words, at.outcome)?.(at) ?? at.outcome}`,
      At: exact(Date.parse(at.at)), Duration: (at.duration_ms ?? null) !== null && took(at.duration_ms), Attempt: at.attempt > 1 && String(at.attempt),
      "Waits for": waits && html`${waits}${instance.awaits_until && html` <span class="muted">until ${exact(Date.parse(instance.awaits_until))}</span>`}`,
      Worker: at.worker && html`<a href=${link(["nodes"])}><${Short} id=${at.worker} /></a>`,
      Signals: named(between, "signal"), Children: named(between, "child"),
    }} />
    ${!(last && at.error === instance.error) && html`<${ErrorText} text=${at.error} />`}
  </div>`;
}

// named lists the signals or children until the next step.
function named(between, outcome) {
  const found = between.filter((e) => e.outcome === outcome);
  return found.length > 0 && html`<span>${found.slice(0, 12).map((e, i) => html`${i > 0 && ", "}${outcome === "child" && e.id ? html`<a href=${link(["instances", e.id])}>${e.detail}</a>` : e.detail}`)}${found.length > 12 && ` and ${found.length - 12} more`}</span>`;
}
