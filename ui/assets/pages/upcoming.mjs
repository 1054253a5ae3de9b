// What comes next: lanes of all that is due within an hour, a day or a week.
import { html, useState } from "../lib.mjs";
import { useLive } from "../live.mjs";
import { alter, altered, route } from "../router.mjs";
import { useKeys } from "../keyboard.mjs";
import { Actions } from "../action.mjs";
import { dueActions } from "../due.mjs";
import { address } from "../palette.mjs";
import { absolute, dayText, eventText, hourText, tick, When } from "../time.mjs";
import { Failure, Heading, Loading, Panel, Table } from "../parts.mjs";

const ranges = { hour: 3_600_000, day: 86_400_000, week: 604_800_000 };
const lanes = { alarm: "Alarms", timer: "Timers", schedule: "Schedules", instance: "State machines", hook: "Hooks", task: "Tasks" };
const names = Object.keys(lanes);
const changes = { alarm: "alarms", timer: "actors", schedule: "schedules", instance: "instances", hook: "hooks", task: "tasks" };
const most = 200; // of a lane
const slots = 48; // of a lane: what falls into one is shown as one

export function Upcoming() {
  const { query } = route.value;
  const range = Object.hasOwn(ranges, query.get("range")) ? query.get("range") : "day";
  const kind = query.get("kind") ?? "";
  const start = Math.floor(tick.value / 30_000) * 30_000; // the window moves twice a minute
  const until = new Date(start + ranges[range]).toISOString();
  // Each lane is read on its own, so that a full one leaves the others theirs.
  const parts = names.map((n) => useLive(kind && kind !== n ? null : "upcoming", { until, kind: n, limit: most }, { kinds: [changes[n]], every: 15_000 }));
  const [slot, setSlot] = useState(null);
  const [rows, setRows] = useState(25);
  const all = parts.flatMap((p) => p.data?.data ?? []).sort((a, b) => Date.parse(a.due_at) - Date.parse(b.due_at));
  const full = names.filter((n, i) => (parts[i].data?.data?.length ?? 0) >= most);
  const error = parts.find((p) => p.error)?.error;
  const data = parts.every((p) => p.data || p.error || !p.loading);
  const refresh = () => parts.forEach((p) => p.refresh());
  const width = ranges[range] / slots;
  const shown = slot ? all.filter((d) => d.kind === slot.kind && slotOf(d, start, width) === slot.at) : all;
  const choose = (r) => { setSlot(null); alter({ range: r }); };
  useKeys({ 1: ["The next hour", () => choose("hour")], 2: ["The next day", () => choose("day")], 3: ["The next week", () => choose("week")] });
  return html`<${Heading} title="What comes next" about="Everything that will happen by itself, and when.">
      <div class="switch" role="group" aria-label="Range">${Object.keys(ranges).map((r) => html`<button class="small" aria-pressed=${r === range} data-range=${r} onClick=${() => choose(r)}>${r}</button>`)}</div>
    <//>
    <nav class="tabs" aria-label="Kind">${["", ...names].map((k) => html`<a key=${k} href=${altered({ kind: k })} aria-current=${k === kind ? "page" : undefined}>${k ? lanes[k] : "all"}</a>`)}</nav>
    <${Failure} error=${error} retry=${refresh} />
    ${!data && html`<${Loading} />`}
    ${data && html`<${Lanes} ...${{ all, start, range, width, slot, setSlot }} />
      <${Panel} title=${slot ? `${lanes[slot.kind]}, ${absolute(start + slot.at * width)}` : "In order"} cls="full" actions=${slot && html`<button class="small" onClick=${() => setSlot(null)}>Show all</button>`}>
        <${Table} title="In order" rows=${shown.slice(0, rows)} empty="Nothing is due in this time." keyOf=${(d) => d.kind + d.id} columns=${[
          ["Due", (d) => html`<b><${When} at=${d.due_at} /></b> <span class="muted">${hourText(Date.parse(d.due_at))}</span>`],
          ["What", (d) => html`<a href=${address(d.link ?? d)}>${titleOf(d)}</a> <span class="muted">${d.kind}</span>`],
          ["Why", (d) => d.why],
          ["", (d) => html`<${Actions} actions=${dueActions} row=${d} one=${d.kind} small=${true} after=${refresh} />`],
        ]} />
        ${shown.length > rows && html`<p><button class="small" onClick=${() => setRows(rows + 100)}>Show more</button> <span class="muted">${rows} of ${shown.length}</span></p>`}
        ${full.length > 0 && html`<p class="muted">Of ${full.map((n) => lanes[n].toLowerCase()).join(", ")} only the next ${most} are read: choose a shorter time to see them spread.</p>`}
      <//>`}`;
}

const titleOf = (d) => eventText(d.name) || d.id;

const slotOf = (d, start, width) => Math.max(0, Math.min(slots - 1, Math.floor((Date.parse(d.due_at) - start) / width)));

function Lanes({ all, start, range, width, slot, setSlot }) {
  const kinds = names.filter((k) => all.some((d) => d.kind === k));
  if (!kinds.length) return null;
  return html`<div class="lanes" role="group" aria-label="Lanes">
    <div class="lane-axis" aria-hidden="true"><span></span><div>${axis(start, range).map(({ at, text }) => html`<span key=${at} style=${{ left: at }}>${text}</span>`)}</div></div>
    ${kinds.map((k) => html`<div key=${k} class="lane"><span class="lane-name">${lanes[k]}</span><div class="lane-track">${slotsOf(all, k, start, width).map(([at, items]) => html`
      <button key=${at} type="button" class=${"due" + (items.length > 1 ? " many" : "")} style=${{ left: `${((at + 0.5) / slots) * 100}%` }} aria-pressed=${slot?.kind === k && slot.at === at}
        aria-label=${`${items.length} ${lanes[k]} at ${absolute(Date.parse(items[0].due_at))}: ${titleOf(items[0])}`} title=${items.slice(0, 6).map((d) => `${hourText(Date.parse(d.due_at))} ${titleOf(d)}`).join("\n")}
        onClick=${() => setSlot(slot?.kind === k && slot.at === at ? null : { kind: k, at })}>${items.length > 1 ? items.length : ""}</button>`)}</div></div>`)}
  </div>`;
}

function slotsOf(all, kind, start, width) {
  const found = new Map();
  for (const d of all) {
    if (d.kind !== kind) continue;
    const at = slotOf(d, start, width);
    found.set(at, [...(found.get(at) ?? []), d]);
  }
  return [...found];
}

// axis marks round times.
function axis(start, range) {
  const step = { hour: 600_000, day: 4 * 3_600_000, week: 86_400_000 }[range];
  const zone = new Date(start).getTimezoneOffset() * 60_000;
  const first = Math.ceil((start - zone) / step) * step + zone;
  const marks = [];
  for (let t = first; t < start + ranges[range]; t += step) marks.push({ at: `${((t - start) / ranges[range]) * 100}%`, text: range === "week" ? dayText(t) : hourText(t) });
  return marks;
}
