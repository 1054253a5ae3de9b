// The one stream of changes that a tab has. It says what has changed, not how:
// whoever shows it reads it again. However many events arrive, listeners are
// told at most once per frame.
import { signal, effect } from "./lib.mjs";
import { url } from "./api.mjs";

/** status is "connecting", "live", "offline" or "paused". */
export const status = signal("connecting");

/** paused stops live updates until it is false again. */
export const paused = signal(false);

/** received counts events, for whoever wants to know. */
export const received = signal(0);

const hiddenFor = 60_000; // then the connection is given back
const listeners = new Set();

let source = null;
let retry = 0;
let hideTimer = 0;
let dirty = new Map(); // kind → ids, or null for any
let events = 0;
let frame = 0;

/** listen calls fn with a map of kinds to sets of ids (null: any) that have changed. */
export function listen(fn) {
  listeners.add(fn);
  return () => listeners.delete(fn);
}

/** start connects, and keeps connected. */
export function start() {
  effect(() => (paused.value ? close("paused") : open()));
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hideTimer);
    if (document.hidden) hideTimer = setTimeout(() => close("paused"), hiddenFor);
    else if (!source && !paused.peek()) open();
  });
}

function open() {
  if (source) return;
  status.value = "connecting";
  source = new EventSource(url("stream"));
  source.onopen = () => {
    retry = 0;
    status.value = "live";
    everything(); // whatever happened while nobody listened
  };
  source.addEventListener("change", (e) => change(e.data));
  source.addEventListener("reset", everything);
  source.onerror = failed;
}

// The browser connects again by itself, except when the server answered with an
// error, as proxies do while it restarts.
function failed() {
  status.value = "offline";
  if (source.readyState !== EventSource.CLOSED) return;
  source = null;
  retry = Math.min(retry + 1, 5);
  setTimeout(() => { if (!paused.peek() && !document.hidden) open(); }, 500 * 2 ** retry);
}

function close(why) {
  source?.close();
  source = null;
  status.value = why;
}

function change(text) {
  let message;
  try { message = JSON.parse(text); } catch { return; }
  events++;
  const known = dirty.get(message.kind);
  if (known === null) return schedule();
  const ids = message.ids ?? [];
  if (!ids.length || message.n > ids.length || (known?.size ?? 0) > 500) dirty.set(message.kind, null);
  else dirty.set(message.kind, ids.reduce((set, id) => set.add(id), known ?? new Set()));
  schedule();
}

function everything() {
  dirty.set("*", null);
  schedule();
}

function schedule() {
  // A hidden tab has no frames, but its timers go on.
  if (!frame) frame = document.hidden ? setTimeout(flush, 1000) : requestAnimationFrame(flush);
}

function flush() {
  const changes = dirty;
  dirty = new Map();
  frame = 0;
  received.value += events;
  events = 0;
  for (const fn of listeners) fn(changes);
}
