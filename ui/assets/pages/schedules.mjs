// Schedules: cron expressions and intervals that start instances.
import { html } from "../lib.mjs";
import { del, post, put, segment } from "../api.mjs";
import { useLive } from "../live.mjs";
import { go, link, route } from "../router.mjs";
import { ask } from "../dialog.mjs";
import { say } from "../toast.mjs";
import { Actions } from "../action.mjs";
import { List } from "../list.mjs";
import { Status } from "../status.mjs";
import { When, inZone } from "../time.mjs";
import { Field, JSONField } from "../form.mjs";
import { Timing } from "./timing.mjs";

const at = (s) => `schedules/${segment(s.name)}`;

/** actions on a schedule. */
export const actions = [
  { name: "fire", label: "Run now", past: "run", key: "f", when: (s) => !s.error, run: (s) => post(`${at(s)}/fire`) },
  { name: "pause", label: "Pause", past: "paused", key: "p", when: (s) => !s.paused, run: (s) => post(`${at(s)}/pause`) },
  { name: "resume", label: "Resume", past: "resumed", key: "p", when: (s) => s.paused, run: (s) => post(`${at(s)}/resume`) },
  { name: "delete", label: "Delete", past: "deleted", danger: true, role: "admin", run: (s) => { leave(s); return del(at(s)); }, question: (s) => `${s.name} will no longer start ${s.definition}. Running instances continue.` },
];

// leave goes to the list if the page of the removed schedule is shown.
const leave = (s) => { if (route.peek().names[1] === s.name) go(link(["schedules"])); };

/** stateOf is the status of a schedule; a schedule that cannot be read does not fire. */
export const stateOf = (s) => (s.error ? "error" : s.paused ? "paused" : "active");

/** unread returns the reason why a schedule does not fire. */
export const unread = (s) => `Cannot be read: ${s.error}`;

const spec = {
  kind: "schedules", one: "schedule", title: "Schedules", path: "schedules", whole: true, every: 15_000,
  about: "Each tick starts one instance, regardless of the number of processes.",
  id: (s) => s.name, href: (s) => link(["schedules", s.name]), actions, create: { label: "New schedule…", open: create },
  empty: "No schedules. Create one with the button above, from Go with fsm.SetSchedule, or with PUT /v1/schedules.",
  columns: [
    { title: "Schedule", cell: (s) => html`<b>${s.name}</b>` },
    { title: "Starts", cell: (s) => html`<a href=${link(["definitions", s.definition])}>${s.definition}</a>` },
    { title: "When", cell: (s) => (s.error ? html`<span class="clip wrong">${unread(s)}</span>` : html`${s.text || s.spec}<br /><code>${s.spec}</code> <span class="muted">${s.zone}</span>`) },
    { title: "State", cell: (s) => html`<${Status} of=${stateOf(s)} />` },
    { title: "Last", cls: "minor", cell: (s) => html`<${When} at=${s.last_at} none="never" />` },
    { title: "Next", cell: (s) => (s.paused || s.error ? html`<span class="muted">–</span>` : html`<${Next} of=${s} />`) },
    { title: "Actions", cell: (s, refresh) => html`<${Actions} actions=${actions} row=${s} one="schedule" small=${true} after=${refresh} />` },
  ],
};

export const Schedules = () => html`<${List} spec=${spec} />`;

// Next shows the next ticks in the schedule's own zone.
function Next({ of }) {
  const times = (of.next?.length ? of.next : [of.next_at]).filter(Boolean);
  return html`<details class="next"><summary><${When} at=${times[0]} /></summary><ol>${times.map((t) => html`<li key=${t}>${inZone(t, of.zone)}</li>`)}</ol></details>`;
}

function create() {
  return ask({
    title: "New schedule", confirm: "Save", wide: true, fields: Fields,
    act: async (v) => {
      if (v.broken) throw new Error("The state is not JSON.");
      const { broken, name, ...body } = { ...usual, ...v };
      await put(`schedules/${segment(name)}`, body);
      say(`Saved ${name}`);
      go(link(["schedules", name]));
    },
  });
}

const usual = { spec: "0 9 * * *", zone: "UTC", missed: "once" };

function Fields({ values, set }) {
  const { data } = useLive("definitions");
  const names = (data?.data ?? []).map((d) => d.name);
  const text = (name, label, more = {}) => html`<${Field} label=${label}><input type="text" required value=${values[name] ?? ""} onInput=${(e) => set({ [name]: e.target.value })} ...${more} /><//>`;
  return html`<div class="side">
      ${text("name", "Name", { autofocus: true })}
      ${text("definition", "State machine", { list: "definition-names" })}<datalist id="definition-names">${names.map((n) => html`<option value=${n} />`)}</datalist>
    </div>
    <${Timing} values=${{ ...usual, ...values }} set=${set} />
    <${JSONField} label="State" value=${values.state ?? {}} rows=${5} onChange=${(s, ok) => set(ok ? { state: s, broken: false } : { broken: true })} />`;
}
