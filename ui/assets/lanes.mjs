// Lanes of upcoming work. The user drags a movable item along its lane, by pointer or
// finger, or with the arrow keys. A change requires confirmation.
import { html, cls, useRef, useState } from "./lib.mjs";
import { isOpen } from "./dialog.mjs";
import { move, whyFixed } from "./due.mjs";
import { say } from "./toast.mjs";
import { absolute, dayText, eventText, hourText, now, span } from "./time.mjs";

/** lanes are the kinds of upcoming work and their titles. */
export const lanes = { alarm: "Alarms", timer: "Timers", schedule: "Schedules", instance: "Instances", hook: "Hooks", task: "Tasks" };

/** slots is the number of slots in a lane. The items in one slot are shown as one mark. */
export const slots = 48;

const minute = 60_000, hour = 60 * minute, day = 24 * hour;
const reach = 5; // pixels that a pointer must move to start a drag

// scale returns, for a length of a lane, the distance of its marks and the step of moves.
const scale = (length) => (length <= hour ? { mark: 10 * minute, step: minute } : length <= day ? { mark: 4 * hour, step: 5 * minute } : { mark: day, step: hour });

/** titleOf is the title of an item. */
export const titleOf = (d) => eventText(d.name) || d.id;

/** slotOf is the slot of an item in a lane that starts at start. */
export const slotOf = (d, start, width) => Math.max(0, Math.min(slots - 1, Math.floor((Date.parse(d.due_at) - start) / width)));

/**
 * Lanes shows all items that are due from start, for a length of time.
 * slot is the selected slot; after is called when an item was moved.
 */
export function Lanes({ all, start: from, length, slot, setSlot, after }) {
  const [moved, setMoving] = useState(null); // {d, to}: the item that is being moved, and its new time
  const moving = moved && all.some((d) => same(d, moved.d)) ? moved : null; // unless the item is gone
  const begun = useRef(from);
  if (!moving) begun.current = from; // the lanes do not scroll while an item is being moved
  const start = begun.current;
  const kinds = Object.keys(lanes).filter((k) => all.some((d) => d.kind === k));
  if (!kinds.length) return null;
  const width = length / slots;
  const isOn = (kind, at) => slot?.kind === kind && slot.at === at;
  const choose = (kind, at) => setSlot(isOn(kind, at) ? null : { kind, at });
  async function confirm({ d, to }) {
    const done = await move({ ...d, name: titleOf(d) }, to);
    setMoving(null);
    if (done) after();
  }
  const shared = { start, length, moving, setMoving, confirm, setSlot };
  return html`<div class="lanes" role="group" aria-label="Lanes">
    <div class="lane-axis" aria-hidden="true"><span></span><div>${axis(start, length).map(({ at, text }) => html`<span key=${at} style=${{ left: at }}>${text}</span>`)}</div></div>
    ${kinds.map((k) => html`<div key=${k} class="lane"><span class="lane-name">${lanes[k]}</span><div class="lane-track">
      ${slotsOf(all, k, start, width, moving?.d).map(({ at, items }) => html`<${Due} key=${items.length > 1 ? at : items[0].id} ...${{ ...shared, kind: k, at, items, on: isOn(k, at), choose: () => choose(k, at) }} />`)}
    </div></div>`)}
    <p class="lane-hint" aria-live="polite">${moving ? html`<b>${titleOf(moving.d)}</b> ${absolute(Date.parse(moving.d.due_at))} → <b>${absolute(moving.to)}</b> <span class="muted">${shift(moving)}<span class="by-key">: Enter to move it, Escape to cancel</span></span>`
      : html`<span class="muted">Drag a mark along its lane to move its due time<span class="by-key">, or select it and press <kbd>←</kbd> <kbd>→</kbd> and <kbd>Enter</kbd></span>. Hollow marks cannot be moved.</span>`}</p>
  </div>`;
}

function shift({ d, to }) {
  const by = to - Date.parse(d.due_at);
  return by === 0 ? "unchanged" : `${span(by)} ${by > 0 ? "later" : "earlier"}`;
}

// Due is a mark on a lane: one item, or all items of a slot.
function Due({ kind, at, items, on, choose, start, length, moving, setMoving, confirm, setSlot }) {
  const grab = useRef(null); // {x, width, to, dragged}: the pointer that holds it
  const held = useRef(null); // the latest time set by key or pointer, even if it is not rendered yet
  const armed = useRef(false); // Enter is down: a long press must not also confirm the dialog
  const d = items[0];
  const many = items.length > 1;
  const mine = !many && moving && same(d, moving.d) ? moving : null;
  if (!mine) held.current = null;
  const { step } = scale(length);
  // Times are rounded, not in the past, and not after the end of the lane.
  const round = (ms) => Math.max(Math.ceil(now() / 1000) * 1000, Math.min(start + length, Math.round(ms / step) * step));
  const refusal = many ? `${items.length} items: select one below to move it.` : whyFixed(d);
  const refuse = () => { if (many) setSlot({ kind, at }); say(refusal, "bad"); };
  const put = (ms) => { held.current = round(ms); setMoving({ d, to: held.current }); };
  const leave = () => { grab.current = held.current = null; setMoving(null); };

  function down(e) {
    if (e.button) return;
    grab.current = { x: e.clientX, width: e.currentTarget.parentElement.clientWidth, dragged: false };
    e.currentTarget.setPointerCapture(e.pointerId);
  }
  function drag(e) {
    const g = grab.current;
    if (!g || !g.dragged && Math.abs(e.clientX - g.x) < reach) return;
    if (!g.dragged && refusal) refuse();
    g.dragged = true;
    if (!refusal) put(Math.max(Date.parse(d.due_at), start) + ((e.clientX - g.x) / g.width) * length);
  }
  function up() {
    if (grab.current?.dragged && held.current !== null) confirm({ d, to: held.current });
    setTimeout(() => { grab.current = null; }); // ignore the click that follows a drag
  }
  const click = () => { if (!grab.current?.dragged && !armed.current) choose(); };
  function keys(e) {
    const by = { ArrowLeft: -step, ArrowRight: step }[e.key];
    if (by && refusal) refuse();
    else if (by) put((held.current ?? Math.max(Date.parse(d.due_at), start)) + by * (e.shiftKey ? 12 : 1));
    else if (e.key === "Enter" && held.current !== null) armed.current = true;
    else if (e.key === "Escape" && mine) leave();
    else return;
    e.preventDefault();
  }
  function released(e) {
    if (e.key === "Enter" && armed.current) confirm({ d, to: held.current });
    armed.current = false;
  }
  const place = mine ? Math.max(0, Math.min(1, (mine.to - start) / length)) : (at + 0.5) / slots;
  return html`${mine && html`<i class="due was" style=${{ left: `${((at + 0.5) / slots) * 100}%` }}></i>`}
    <button type="button" class=${cls("due", many && "many", refusal && !many && "fixed", mine && "moving")} style=${{ left: `${place * 100}%` }} aria-pressed=${on}
      aria-label=${`${many ? `${items.length} ${lanes[kind]}, the first` : lanes[kind]} at ${absolute(Date.parse(d.due_at))}: ${titleOf(d)}${refusal && !many ? ". Cannot be moved" : ""}`}
      title=${[...items.slice(0, 6).map((i) => `${hourText(Date.parse(i.due_at))} ${titleOf(i)}`), !many && refusal].filter(Boolean).join("\n")}
      onPointerDown=${down} onPointerMove=${drag} onPointerUp=${up} onPointerCancel=${leave} onClick=${click} onKeyDown=${keys} onKeyUp=${released} onBlur=${() => { if (mine && !grab.current && !isOpen()) setMoving(null); }}>${many ? items.length : ""}</button>`;
}

const same = (a, b) => a.kind === b.kind && a.id === b.id;

// slotsOf groups the items of each slot. The item that is being moved stays separate, so
// that its mark is not replaced during the drag.
function slotsOf(all, kind, start, width, alone) {
  const found = new Map();
  for (const d of all) {
    if (d.kind !== kind) continue;
    const at = slotOf(d, start, width);
    const key = alone && same(d, alone) ? "alone" : at;
    if (!found.has(key)) found.set(key, { at, items: [] });
    found.get(key).items.push(d);
  }
  return [...found.values()];
}

// axis marks round times.
function axis(start, length) {
  const { mark } = scale(length);
  const zone = new Date(start).getTimezoneOffset() * minute;
  const first = Math.ceil((start - zone) / mark) * mark + zone;
  const marks = [];
  for (let t = first; t < start + length; t += mark) marks.push({ at: `${((t - start) / length) * 100}%`, text: mark === day ? dayText(t) : hourText(t) });
  return marks;
}
