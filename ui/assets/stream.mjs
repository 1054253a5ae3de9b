// The stream of changes; each tab has one. An event names the changed resource, not the
// change: the component that shows the resource reads it again. Listeners are called at
// most once per frame.
import { signal, effect } from "./lib.mjs";
import { url } from "./api.mjs";

/** status is "connecting", "live", "offline" or "paused". */
export const status = signal("connecting");

/** paused stops live updates while it is true. */
export const paused = signal(false);

/** received counts the received events. */
export const received = signal(0);

const hiddenFor = 60_000; // ms until a hidden tab closes its connection
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

/** start connects, and reconnects when needed. */
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
    everything(); // changes may have been missed while the stream was not connected
  };
  source.addEventListener("change", (e) => change(e.data));
  source.addEventListener("reset", everything);
  source.onerror = failed;
}

// The browser reconnects automatically, except after an error response, which proxies
// send while the server restarts.
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
  // A hidden tab has no animation frames, but its timers run.
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
