// The attempts of a work item: start, duration, worker and outcome of each, and the
// due time of the next attempt.
import { html, own } from "./lib.mjs";
import { shorten } from "./copy.mjs";
import { waiting } from "./status.mjs";
import { Timeline } from "./timeline.mjs";
import { relative, tick } from "./time.mjs";

const looks = { failed: "error", lost: "crash", cancelled: "cancelled", succeeded: "done", running: "next" };

const since = (at) => relative(Date.parse(at), tick.value);

const attempt = (t) => ({
  at: t.began_at ?? t.ended_at, duration_ms: t.duration_ms, how: own(looks, t.outcome), error: t.error, title: ["Attempt", t.number].filter(Boolean).join(" "),
  text: [t.outcome, t.worker && `on ${shorten(t.worker)}`, t.began_at ? `started ${since(t.began_at)}` : `ended ${since(t.ended_at)}`].filter(Boolean).join(" "),
});

/** Retrying says what failed and when the next attempt is due. */
export function Retrying({ of, failures = of.failures ?? of.attempts, due = of.due_at ?? of.scheduled_at }) {
  if (of.status !== "retrying") return null;
  return html`<p class="waiting is-bad">Failed: ${String(of.error ?? "").split("\n")[0] || "no error was recorded"}. Attempt ${failures + 1}${of.max_attempts ? ` of ${of.max_attempts}` : ""} is due ${since(due)}.</p>`;
}

/** Attempts shows the attempts of a work item; begun is the first line: its text and time. */
export function Attempts({ of, begun }) {
  const entries = [{ at: begun[1], title: begun[0], how: "created" }, ...(of.timeline ?? []).map(attempt)];
  const due = of.scheduled_at && !of.due_at ? of.scheduled_at : of.due_at;
  if (waiting.includes(of.status) && due) entries.push({ at: due, title: of.timeline?.length ? "Next attempt" : "First attempt", how: "due", text: since(due) });
  if (of.finished_at) entries.push({ at: of.finished_at, title: "Finished", how: of.status, text: of.status });
  return html`<${Timeline} entries=${entries} />`;
}
