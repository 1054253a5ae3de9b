// Alarms and timers: each is a row.
import { html, own } from "../lib.mjs";
import { del, post, put, segment } from "../api.mjs";
import { useLive } from "../live.mjs";
import { go, link, route } from "../router.mjs";
import { ask } from "../dialog.mjs";
import { say } from "../toast.mjs";
import { Actions } from "../action.mjs";
import { dueActions } from "../due.mjs";
import { List } from "../list.mjs";
import { ID, Short } from "../copy.mjs";
import { Status, Tries, waiting } from "../status.mjs";
import { At, When, localInput, now } from "../time.mjs";
import { JSONView } from "../json.mjs";
import { Attempts, Retrying } from "../attempts.mjs";
import { Field, JSONField } from "../form.mjs";
import { ErrorText, Facts, Failure, Heading, Loading, Panel } from "../parts.mjs";
import { AuditLink } from "./audit.mjs";

const at = (a) => `alarms/${segment(a.id)}`;
const statuses = ["ready", "running", "retrying", "scheduled", "failed", "quarantined"];

// An alarm has the actions of all scheduled work.
const due = (action) => ({ ...action, when: undefined, statuses: waiting, past: { skip: "skipped", fire: "fired" }[action.name], open: action.open && ((a) => action.open(withPaths(a))), run: action.run && ((a) => action.run(withPaths(a))) });
const withPaths = (a) => ({ ...a, name: a.type, actions: { move: `${path(a)}/move`, skip: `${path(a)}/skip`, fire: `${path(a)}/fire` } });
const path = (a) => (a.kind === "timer" ? `actors/${segment(a.actor.type)}/${segment(a.actor.id)}/timers/${segment(keyOf(a))}` : at(a));
const keyOf = (a) => a.id.slice(`${a.actor.type}/${a.actor.id}/`.length);

const actions = [
  ...dueActions.map(due).map((a) => ({ ...a, key: { move: "m", skip: "s", fire: "f" }[a.name] })),
  { name: "retry", label: "Retry", past: "retried", key: "r", statuses: ["failed", "quarantined"], run: (a) => post(`${at(a)}/retry`) },
  { name: "cancel", label: "Cancel", past: "cancelled", key: "c", danger: true, statuses, run: (a) => { leave(a); return remove(a); }, message: cancelled, question: (a) => `${a.type} ${a.id} will be removed.` },
];

// remove cancels an alarm. A missing alarm is a result, not an error.
const remove = (a) => del(at(a)).catch((e) => { if (e.status !== 404) throw e; return { result: "not_found" }; });

// cancelled describes the result of a cancellation.
function cancelled(answer, a) {
  return own({
    prevented: `Cancelled: alarm ${a.id} will not fire`,
    too_late: `Too late: alarm ${a.id} was removed, but its handler is running or has run`,
    not_found: `Nothing to cancel: alarm ${a.id} no longer exists`,
  }, answer?.result);
}

// leave goes to the list if the page of the removed alarm is shown.
const leave = (a) => { if (route.peek().names[1] === a.id) go(link(["alarms"])); };

const often = (a) => a.text || a.cron || (a.every && `every ${a.every}`) || "once";

const spec = {
  kind: "alarms", one: "alarm", title: "Alarms & timers", path: "alarms", bulk: "alarms/actions",
  about: "Calls of handlers at a time, once or repeatedly. Filter by kind:timer for the timers of actors.",
  filters: { type: "type", status: statuses, actor: "type/id of the actor", kind: ["alarm", "timer"] },
  statuses,
  id: (a) => a.id, href: (a) => link(["alarms", a.id]), actions,
  create: { label: "New alarm…", open: () => schedule() },
  empty: "No alarm matches. Create one with the button above, or with PUT /v1/alarms.",
  columns: [
    { title: "Alarm", cell: (a) => html`<b>${a.type}</b> <${Short} id=${a.id} />` },
    { title: "Due", cell: (a) => html`<${When} at=${a.due_at} />` },
    { title: "Repeats", cls: "minor", cell: often },
    { title: "Status", cell: (a) => html`<${Status} of=${a.status} /><${Tries} of=${a} />` },
    { title: "Actor", cell: (a) => a.actor && html`<a href=${link(["actors", a.actor.type, a.actor.id])}>${a.actor.type} <${Short} id=${a.actor.id} /></a>` },
  ],
};

// The timers of actors are listed in the same way and link to their actors.
const delays = {
  ...spec, bulk: undefined, actions: actions.filter((a) => ["move", "skip", "fire"].includes(a.name)), statuses: ["ready", "scheduled", "quarantined"],
  href: (a) => link(["actors", a.actor.type, a.actor.id]), empty: "No timer matches.",
  columns: spec.columns.map((c) => (c.title === "Alarm" ? { title: "Timer", cell: (a) => html`<b>${a.type}</b> <${Short} id=${keyOf(a)} />` } : c)).filter((c) => c.title !== "Repeats"),
};

export const Alarms = () => html`<${List} spec=${route.value.query.get("kind") === "timer" ? delays : spec} />`;

function schedule() {
  return ask({
    title: "New alarm", confirm: "Set", wide: true,
    fields: ({ values, set }) => html`<div class="side">
        <${Field} label="Id" hint="Replaces an existing alarm with this id"><input type="text" required autofocus value=${values.id ?? ""} onInput=${(e) => set({ id: e.target.value })} /><//>
        <${Field} label="Type"><input type="text" required value=${values.type ?? ""} onInput=${(e) => set({ type: e.target.value })} /><//>
      </div><div class="side">
        <${Field} label="Due"><input type="datetime-local" step="1" required value=${values.at ?? localInput(now() + 3_600_000)} onInput=${(e) => set({ at: e.target.value })} /><//>
        <${Field} label="Repeats" hint="An interval such as 1h, or a cron expression. Empty: once"><input type="text" value=${values.every ?? ""} onInput=${(e) => set({ every: e.target.value })} /><//>
      </div>
      <${JSONField} label="Payload" rows=${5} value=${values.payload ?? {}} onChange=${(v, ok) => set(ok ? { payload: v, broken: false } : { broken: true })} />`,
    act: async (v) => {
      if (v.broken) throw new Error("The payload is not JSON.");
      const repeat = !v.every ? {} : /\s|@/.test(v.every) ? { cron: v.every } : { every: v.every };
      await put(`alarms/${segment(v.id)}`, { type: v.type, at: new Date(v.at ?? now() + 3_600_000).toISOString(), payload: v.payload ?? {}, ...repeat });
      say(`Set ${v.id}`);
      go(link(["alarms", v.id]));
    },
  });
}

export function Alarm({ names: [id] }) {
  const { data: a, error, refresh } = useLive(`alarms/${segment(id)}`, {}, { kinds: ["alarms"], id });
  if (!a) return error ? html`<${Heading} title=${id} kind="Alarm" /><${Failure} error=${error} retry=${refresh} />` : html`<${Loading} />`;
  return html`<${Heading} title=${a.type} kind="Alarm"><${AuditLink} kind="alarms" target=${a.id} /><${Actions} actions=${actions} row=${a} one="alarm" after=${refresh} /><//>
    <${Failure} error=${error} />
    <div class="lead"><${Status} of=${a.status} /><${ID} id=${a.id} /></div>
    <${Retrying} of=${a} />
    <p class="countdown"><${When} at=${a.due_at} /></p>
    <${ErrorText} text=${a.error} open=${true} />
    <div class="columns">
      <${Panel} title="Details"><${Facts} of=${{ Due: html`<${At} at=${a.due_at} />`, Repeats: often(a), "Time zone": a.zone, "Missed ticks": a.missed, Kind: a.kind,
        Actor: a.actor && html`<a href=${link(["actors", a.actor.type, a.actor.id])}>${a.actor.type} ${a.actor.id}</a>`, Attempts: a.attempts && `${a.attempts}${a.max_attempts ? ` of ${a.max_attempts}` : ""}`, Created: html`<${At} at=${a.created_at} />` }} /><//>
      <div>
        <${Panel} title="Attempts"><${Attempts} of=${a} begun=${["Scheduled", a.created_at]} /><//>
        <${Panel} title="Payload"><${JSONView} value=${a.payload} label="Payload" /><//>
      </div>
    </div>
    <${Panel} title="Raw" cls="full"><${JSONView} value=${a} open=${1} label="Raw JSON" /><//>`;
}
