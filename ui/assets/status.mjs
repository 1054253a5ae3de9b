// An icon and a word show a status; color is only an addition.
import { html, own } from "./lib.mjs";

const looks = {
  done: "ok", up: "ok", active: "ok", live: "ok", succeeded: "ok", consumed: "ok",
  running: "run",
  ready: "due", due: "due",
  scheduled: "wait", retrying: "again", waiting: "wait", draining: "wait", paused: "pause",
  failed: "bad", error: "bad", gone: "bad", quarantined: "jail",
  cancelled: "off", stopped: "off", no_worker: "odd", skipped: "off",
};

const shapes = {
  ok: "M3 8.5 6.5 12 13 4.5",
  run: "M5 3.5v9l7-4.5z",
  due: "M2.5 8h9M8 4l4 4-4 4",
  wait: "M8 4.5V8l2.5 2M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2z",
  again: "M13 8a5 5 0 1 1-1.7-3.7M13 2v3h-3",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  bad: "M4 4l8 8M12 4l-8 8",
  jail: "M8 2 14 13.5H2zM8 6.5v3.2M8 11.6v.2",
  off: "M3 8h10",
  odd: "M5.5 5.8A2.6 2.6 0 1 1 8 8.6v1.2M8 12.3v.2",
};

const words = { no_worker: "no worker" };

/** waiting are the statuses of work that waits for its due time or for a worker. */
export const waiting = ["ready", "retrying", "scheduled"];

/** runnable are the statuses of work that can be run before its due time. */
export const runnable = ["retrying", "scheduled"];

/** look is the icon and the color of a status. */
export const look = (status) => own(looks, status) ?? "wait";

/** word is the text of a status. */
export const word = (status) => own(words, status) ?? String(status ?? "");

/** Tries describes the failed attempts of work, for example "failed 3 of 20". */
export function Tries({ of, failures = of.failures ?? of.attempts }) {
  if (of.status !== "retrying" || !failures) return null;
  return html` <span class="muted">attempt ${failures + 1}${of.max_attempts ? ` of ${of.max_attempts}` : ""}</span>`;
}

/** Icon is a small drawing that screen readers skip. */
export function Icon({ shape }) {
  return html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${own(shapes, shape) ?? shape} /></svg>`;
}

/** Status shows a state, and what work with the state waits for. */
export function Status({ of, waits }) {
  if (!of) return null;
  return html`<span class=${"status is-" + look(of)}><${Icon} shape=${look(of)} />${word(of)}${waits && ` for ${waits}`}</span>`;
}
