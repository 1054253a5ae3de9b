// Schedules: what starts by itself.
import { html } from "../lib.mjs";
import { del, post, put, segment } from "../api.mjs";
import { useLive } from "../live.mjs";
import { link } from "../router.mjs";
import { ask } from "../dialog.mjs";
import { say } from "../toast.mjs";
import { Actions } from "../action.mjs";
import { List } from "../list.mjs";
import { Status } from "../status.mjs";
import { When, absolute } from "../time.mjs";
import { Field, JSONField } from "../form.mjs";

const at = (s) => `schedules/${segment(s.name)}`;

const actions = [
  { name: "fire", label: "Run now", past: "run", key: "f", run: (s) => post(`${at(s)}/fire`) },
  { name: "pause", label: "Pause", past: "paused", key: "p", when: (s) => !s.paused, run: (s) => post(`${at(s)}/pause`) },
  { name: "resume", label: "Resume", past: "resumed", key: "p", when: (s) => s.paused, run: (s) => post(`${at(s)}/resume`) },
  { name: "edit", label: "Edit", single: true, open: (s) => edit(s) },
  { name: "delete", label: "Delete", past: "deleted", danger: true, run: (s) => del(at(s)), question: (s) => `${s.name} starts ${s.fsm} no more. Instances that run go on.` },
];

const spec = {
  kind: "schedules", one: "schedule", title: "Schedules", path: "schedules", whole: true, every: 15_000,
  about: "Each tick starts one instance, however many processes run.",
  id: (s) => s.name, actions, create: { label: "New schedule", open: () => edit() },
  empty: "No schedule is set. Make one above, from Go with fsm.SetSchedule, or with PUT /v1/schedules.",
  columns: [
    { title: "Schedule", cell: (s) => html`<b>${s.name}</b><br /><span class="muted">starts <a href=${link(["definitions", s.fsm])}>${s.fsm}</a></span>` },
    { title: "When", cell: (s) => html`${s.text || s.spec}<br /><code>${s.spec}</code> <span class="muted">${s.zone}</span>` },
    { title: "State", cell: (s) => html`<${Status} of=${s.paused ? "paused" : "active"} />` },
    { title: "Last", cls: "minor", cell: (s) => html`<${When} at=${s.last_at} none="never" />` },
    { title: "Next", cell: (s) => (s.paused ? html`<span class="muted">–</span>` : html`<${Next} of=${s} />`) },
    { title: "Actions", cell: (s, refresh) => html`<${Actions} actions=${actions} row=${s} one="schedule" small=${true} after=${refresh} />` },
  ],
};

export const Schedules = () => html`<${List} spec=${spec} />`;

// Next shows the next ticks in the schedule's own zone.
function Next({ of }) {
  const times = (of.next?.length ? of.next : [of.next_at]).filter(Boolean);
  return html`<details class="next"><summary><${When} at=${times[0]} /></summary><ol>${times.map((t) => html`<li key=${t}>${inZone(t, of.zone)}</li>`)}</ol></details>`;
}

function inZone(time, zone) {
  try {
    return new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long", timeZone: zone || "UTC" }).format(Date.parse(time));
  } catch {
    return absolute(Date.parse(time));
  }
}

function edit(schedule) {
  return ask({
    title: schedule ? `Edit ${schedule.name}` : "New schedule", confirm: "Save", wide: true,
    text: schedule && schedule.state === undefined ? "The state below replaces the one that the schedule has, which is not shown." : "",
    fields: (props) => html`<${Fields} ...${props} schedule=${schedule} />`,
    act: async (v) => {
      if (v.broken) throw new Error("The state is not JSON.");
      const { broken, ...values } = v;
      const all = { ...usual, ...pick(schedule), ...values };
      const { name, ...body } = all;
      await put(`schedules/${segment(name)}`, body);
      say(`Saved ${name}`);
    },
  });
}

const usual = { spec: "0 9 * * *", zone: "UTC", missed: "once" };

const pick = (s) => s && { name: s.name, fsm: s.fsm, version: s.version, spec: s.spec, zone: s.zone, missed: s.missed, state: s.state };

function Fields({ values, set, schedule }) {
  const { data } = useLive("definitions");
  const names = (data?.data ?? []).map((d) => d.name);
  const v = { ...usual, ...pick(schedule), ...values };
  const text = (name, label, hint, more = {}) => html`<${Field} label=${label} hint=${hint}><input type="text" required value=${v[name] ?? ""} onInput=${(e) => set({ [name]: e.target.value })} ...${more} /><//>`;
  return html`<div class="side">
      ${text("name", "Name", "", { disabled: !!schedule, autofocus: !schedule })}
      ${text("fsm", "Machine", "", { list: "fsm-names" })}<datalist id="fsm-names">${names.map((n) => html`<option value=${n} />`)}</datalist>
    </div><div class="side">
      ${text("spec", "When", "A cron expression, @daily, or @every 90s")}
      ${text("zone", "Time zone", "As Europe/Berlin")}
      <${Field} label="Missed ticks"><select value=${v.missed} onChange=${(e) => set({ missed: e.target.value })}>
        <option value="once">run once for all of them</option><option value="skip">skip</option><option value="all">run each</option></select><//>
    </div>
    <${JSONField} label="State" value=${v.state ?? {}} rows=${5} onChange=${(s, ok) => set(ok ? { state: s, broken: false } : { broken: true })} />`;
}
