// Times and durations in readable form.
import { effect, html, signal } from "./lib.mjs";
import { skew } from "./api.mjs";

/** tick is the server's time, updated once a second. */
export const tick = signal(Date.now());
effect(() => { tick.value = Date.now() + skew.value; });
setInterval(() => { if (!document.hidden) tick.value = now(); }, 1000);

/** now is the server's time. */
export const now = () => Date.now() + skew.peek();

const units = [["d", 86_400_000], ["h", 3_600_000], ["m", 60_000], ["s", 1000]];

/** span formats milliseconds with at most two units: 850 ms, 12 s, 3 m 5 s, 2 d 4 h. */
export function span(ms) {
  ms = Math.abs(ms);
  if (!(ms >= 1)) return "0 s";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const at = units.findIndex(([, size]) => ms >= size);
  const [unit, size] = units[at];
  const whole = Math.floor(ms / size);
  const rest = at + 1 < units.length ? Math.floor((ms % size) / units[at + 1][1]) : 0;
  return rest && whole < 10 ? `${whole} ${unit} ${rest} ${units[at + 1][0]}` : `${whole} ${unit}`;
}

/** took formats the duration of an execution. */
export const took = (ms) => (ms < 1 ? "< 1 ms" : span(ms));

// coarse formats with one unit, which is enough for past times.
function coarse(ms) {
  const [unit, size] = units.find(([, s]) => -ms >= s);
  return `${Math.floor(-ms / size)} ${unit}`;
}

/** relative formats the distance of a time from now. */
export function relative(at, from = now()) {
  const ms = at - from;
  if (!(Math.abs(ms) >= 1000)) return "now";
  return ms < 0 ? `${coarse(ms)} ago` : `in ${span(ms)}`;
}

const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short" });

const dates = new Map(); // a cache: formatting is slow, and the same times are shown repeatedly

/** absolute formats a time in the user's zone; an invalid time gives an empty text. */
export function absolute(at) {
  if (Number.isNaN(at)) return "";
  let text = dates.get(at);
  if (!text) {
    if (dates.size > 5000) dates.clear();
    dates.set(at, (text = full.format(at)));
  }
  return text;
}

export const hourText = (at) => (Number.isNaN(at) ? "" : clock.format(at));
export const dayText = (at) => day.format(at);

/** exact formats a time in the user's zone with the name of the zone; utc does the same in UTC. */
export const exact = (at) => zoned(at);
export const utc = (at) => zoned(at, "UTC");

/** inZone formats a time in a zone, or in the user's zone if the browser does not know the zone. */
export function inZone(at, zone) {
  try { return zoned(Date.parse(at), zone || "UTC"); } catch { return zoned(Date.parse(at)); }
}

const zones = new Map();

// zoned omits the current year, and seconds that are zero.
function zoned(at, timeZone) {
  if (Number.isNaN(at)) return "";
  const year = new Date(at).getFullYear() === new Date(now()).getFullYear() ? undefined : "numeric";
  const second = at % 60_000 ? "2-digit" : undefined;
  const key = `${timeZone} ${year} ${second}`;
  if (!zones.has(key)) zones.set(key, new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short", year, hour: "2-digit", minute: "2-digit", second, hourCycle: "h23", timeZoneName: "short", timeZone }));
  return zones.get(key).format(at);
}

// both is the title of a time: in the user's zone, and in UTC if that differs.
const both = (ms) => [...new Set([exact(ms), utc(ms)])].join("\n");

/** When shows the distance of a time from now, kept current; its title is the exact time. */
export function When({ at, none = "–" }) {
  const ms = Date.parse(at ?? "");
  if (Number.isNaN(ms)) return html`<span class="muted">${none}</span>`;
  return html`<time datetime=${at} title=${both(ms)}>${relative(ms, Math.max(tick.value, 0))}</time>`;
}

/** At shows an exact time and its distance from now. */
export function At({ at, none = "–" }) {
  const ms = Date.parse(at ?? "");
  if (Number.isNaN(ms)) return html`<span class="muted">${none}</span>`;
  return html`<time datetime=${at} title=${both(ms)}>${absolute(ms)} <span class="muted">${relative(ms, tick.value)}</span></time>`;
}

/** localInput formats a time for <input type=datetime-local>. */
export function localInput(ms) {
  const d = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return d.toISOString().slice(0, 19);
}

/** eventText describes the internal events of statecharts in words. */
export function eventText(type) {
  const text = String(type ?? "");
  const [, ms, state] = /^xstate\.after\.(\d+)\.(.+)$/.exec(text) ?? [];
  if (ms) return `after ${span(Number(ms))} in ${state.split(".").slice(1).join(".") || state}`;
  return text === "xstate.init" ? "start" : text;
}
