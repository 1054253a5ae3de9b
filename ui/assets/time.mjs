// Times and durations, as people read them.
import { effect, html, signal } from "./lib.mjs";
import { skew } from "./api.mjs";

/** tick is the server's time, once a second. */
export const tick = signal(Date.now());
effect(() => { tick.value = Date.now() + skew.value; });
setInterval(() => { if (!document.hidden) tick.value = now(); }, 1000);

/** now is the server's time. */
export const now = () => Date.now() + skew.peek();

const units = [["d", 86_400_000], ["h", 3_600_000], ["m", 60_000], ["s", 1000]];

/** span writes milliseconds with at most two units: 850 ms, 12 s, 3 m 5 s, 2 d 4 h. */
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

/** took writes how long something took. */
export const took = (ms) => (ms < 1 ? "< 1 ms" : span(ms));

// coarse has one unit: what is past needs no more.
function coarse(ms) {
  const [unit, size] = units.find(([, s]) => -ms >= s);
  return `${Math.floor(-ms / size)} ${unit}`;
}

/** relative writes how far a time is away. */
export function relative(at, from = now()) {
  const ms = at - from;
  if (!(Math.abs(ms) >= 1000)) return "now";
  return ms < 0 ? `${coarse(ms)} ago` : `in ${span(ms)}`;
}

const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short" });

const dates = new Map(); // formatting is slow, and the same times are shown again and again

/** absolute writes a time in the reader's zone; nothing for what is no time. */
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

/** exact writes a time in the reader's zone with the name of the zone, and utc the same in UTC. */
export const exact = (at) => zoned(at);
export const utc = (at) => zoned(at, "UTC");

/** inZone writes a time in a zone; in the reader's if the zone is not known here. */
export function inZone(at, zone) {
  try { return zoned(Date.parse(at), zone || "UTC"); } catch { return zoned(Date.parse(at)); }
}

const zones = new Map();

// zoned leaves out what goes without saying: the number of this year, and no seconds.
function zoned(at, timeZone) {
  if (Number.isNaN(at)) return "";
  const year = new Date(at).getFullYear() === new Date(now()).getFullYear() ? undefined : "numeric";
  const second = at % 60_000 ? "2-digit" : undefined;
  const key = `${timeZone} ${year} ${second}`;
  if (!zones.has(key)) zones.set(key, new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short", year, hour: "2-digit", minute: "2-digit", second, hourCycle: "h23", timeZoneName: "short", timeZone }));
  return zones.get(key).format(at);
}

// both are for the title of a time: the reader's zone and UTC may differ.
const both = (ms) => [...new Set([exact(ms), utc(ms)])].join("\n");

/** When shows a time as its distance, kept current; the exact one is its title. */
export function When({ at, none = "–" }) {
  const ms = Date.parse(at ?? "");
  if (Number.isNaN(ms)) return html`<span class="muted">${none}</span>`;
  return html`<time datetime=${at} title=${both(ms)}>${relative(ms, Math.max(tick.value, 0))}</time>`;
}

/** At shows a time exactly, and its distance. */
export function At({ at, none = "–" }) {
  const ms = Date.parse(at ?? "");
  if (Number.isNaN(ms)) return html`<span class="muted">${none}</span>`;
  return html`<time datetime=${at} title=${both(ms)}>${absolute(ms)} <span class="muted">${relative(ms, tick.value)}</span></time>`;
}

/** localInput writes a time as <input type=datetime-local> wants it. */
export function localInput(ms) {
  const d = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return d.toISOString().slice(0, 19);
}

/** eventText writes the names that machines give to events of their own in words. */
export function eventText(type) {
  const text = String(type ?? "");
  const [, ms, state] = /^xstate\.after\.(\d+)\.(.+)$/.exec(text) ?? [];
  if (ms) return `after ${span(Number(ms))} in ${state.split(".").slice(1).join(".") || state}`;
  return text === "xstate.init" ? "start" : text;
}
