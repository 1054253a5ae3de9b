// Upcoming: lanes of all work that is due within an hour, a day or a week.
import { html, useState } from "../lib.mjs";
import { useLive } from "../live.mjs";
import { alter, altered, route } from "../router.mjs";
import { useKeys } from "../keyboard.mjs";
import { Actions } from "../action.mjs";
import { dueActions } from "../due.mjs";
import { Short } from "../copy.mjs";
import { address } from "../palette.mjs";
import { Lanes, lanes, slotOf, slots, titleOf } from "../lanes.mjs";
import { absolute, hourText, tick, When } from "../time.mjs";
import { Failure, Heading, Loading, Panel, Table } from "../parts.mjs";

const ranges = { hour: 3_600_000, day: 86_400_000, week: 604_800_000 };
const names = Object.keys(lanes);
const changes = { alarm: "alarms", timer: "actors", schedule: "schedules", instance: "instances", hook: "hooks", task: "tasks" };
const most = 200; // items of a lane

export function Upcoming() {
  const { query } = route.value;
  const range = Object.hasOwn(ranges, query.get("range")) ? query.get("range") : "day";
  const kind = query.get("kind") ?? "";
  const start = Math.floor(tick.value / 30_000) * 30_000; // the window moves every 30 s
  const until = new Date(start + ranges[range]).toISOString();
  // Each lane is read separately, so that a full lane does not use up the limit of the others.
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
  return html`<${Heading} title="Upcoming" about="All work that is due within the selected time.">
      <div class="switch" role="group" aria-label="Range">${Object.keys(ranges).map((r) => html`<button class="small" aria-pressed=${r === range} data-range=${r} onClick=${() => choose(r)}>${r}</button>`)}</div>
    <//>
    <nav class="tabs" aria-label="Kind">${["", ...names].map((k) => html`<a key=${k} href=${altered({ kind: k })} aria-current=${k === kind ? "page" : undefined}>${k ? lanes[k] : "all"}</a>`)}</nav>
    <${Failure} error=${error} retry=${refresh} />
    ${!data && html`<${Loading} />`}
    ${data && html`<${Lanes} ...${{ all, start, length: ranges[range], slot, setSlot, after: refresh }} />
      <${Panel} title=${slot ? `${lanes[slot.kind]}, ${absolute(start + slot.at * width)}` : "By due time"} cls="full" actions=${slot && html`<button class="small" onClick=${() => setSlot(null)}>Show all</button>`}>
        <${Table} title="By due time" rows=${shown.slice(0, rows)} empty="No work is due in this time." keyOf=${(d) => d.kind + d.id} cls="stacked" columns=${[
          ["Due", (d) => html`<b><${When} at=${d.due_at} /></b> <span class="muted">${hourText(Date.parse(d.due_at))}</span>`],
          ["Work", (d) => html`<a href=${address(d.link ?? d)}>${titleOf(d)}</a> <span class="muted">${d.kind}</span> <${Short} id=${d.kind === "timer" ? d.link?.id : d.id} />`],
          ["Reason", (d) => d.why],
          ["", (d) => html`<${Actions} actions=${dueActions} row=${{ ...d, name: titleOf(d) }} one=${d.kind} small=${true} after=${refresh} />`],
        ]} />
        ${shown.length > rows && html`<p><button class="small" onClick=${() => setRows(rows + 100)}>Show more</button> <span class="muted">${rows} of ${shown.length}</span></p>`}
        ${full.length > 0 && html`<p class="muted">Only the next ${most} ${full.map((n) => lanes[n].toLowerCase()).join(", ")} are shown. Select a shorter range to see how they are distributed.</p>`}
      <//>`}`;
}
