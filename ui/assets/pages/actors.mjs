// Actors: durable instances of statecharts.
import { html, useEffect } from "../lib.mjs";
import { Short } from "../copy.mjs";
import { post, segment } from "../api.mjs";
import { useLive } from "../live.mjs";
import { go, link, route } from "../router.mjs";
import { ask } from "../dialog.mjs";
import { say } from "../toast.mjs";
import { List } from "../list.mjs";
import { Status } from "../status.mjs";
import { When } from "../time.mjs";
import { Field, JSONField, sample } from "../form.mjs";

export const at = (a) => `actors/${segment(a.type)}/${segment(a.id)}`;

/** actions on an actor. */
export const actions = [
  { name: "resume", label: "Resume", past: "resumed", key: "r", statuses: ["quarantined"], run: (a) => post(`${at(a)}/resume`) },
  { name: "stop", label: "Stop", past: "stopped", key: "c", danger: true, statuses: ["active"], run: (a) => post(`${at(a)}/stop`),
    question: (a) => `${a.type} ${a.id} will be stopped, and its timers removed. This cannot be undone.` },
  { name: "reset", label: "Reset…", key: "R", danger: true, single: true, role: "admin", statuses: ["quarantined", "error"], open: reset },
];

// reset asks for the transition to return to.
function reset(a) {
  const name = `${a.type} ${a.id}`;
  return ask({
    title: "Reset this actor?", confirm: "Reset", danger: true,
    text: `${name} will have the state and the timers that it had after a transition of its log. Changes of later transitions are lost; their effects are not undone.`,
    fields: ({ values, set }) => html`<${Field} label="Transition" hint=${`At most ${a.version}. Default: the last transition that can be replayed from the log`}>
      <input type="number" min="0" max=${a.version} autofocus value=${values.step ?? ""} onInput=${(e) => set({ step: e.target.value })} /><//>`,
    act: async (v) => {
      await post(`${at(a)}/reset`, { step: Number(v.step || 0) });
      say(`Reset: ${name}`);
    },
  });
}

const spec = {
  kind: "actors", one: "actor", title: "Actors", path: "actors", bulk: "actors/actions",
  about: "Durable instances of statecharts.",
  filters: { type: "name of the statechart", status: ["active", "done", "error", "stopped", "quarantined"], state: "active state" },
  statuses: ["active", "done", "error", "stopped", "quarantined"],
  id: (a) => `${a.type}/${a.id}`, href: (a) => link(["actors", a.type, a.id]), actions,
  create: { label: "New actor…", open: () => createActor(route.value.query.get("type") ?? "") },
  empty: "No actor matches. Create one with the button above, or with POST /v1/actors.",
  columns: [
    { title: "Actor", cell: (a) => html`<b>${a.type}</b> <${Short} id=${a.id} />` },
    { title: "Status", cell: (a) => html`<${Status} of=${a.status} />` },
    { title: "State", cell: (a) => html`<code>${a.state}</code>` },
    { title: "Next timer", cell: (a) => html`<${When} at=${a.next_timer_at} />` },
    { title: "Version", cls: "minor", cell: (a) => a.version },
    { title: "Changed", cls: "minor", cell: (a) => html`<${When} at=${a.updated_at} />` },
  ],
};

export const Actors = () => html`<${List} spec=${spec} />`;

/** createActor asks for a type, an id and the input of an actor, and creates the actor. */
export function createActor(type) {
  return ask({
    title: "New actor", confirm: "Create", wide: true,
    fields: (props) => html`<${Fields} ...${props} type=${type} />`,
    act: async (v) => {
      if (v.broken) throw new Error("The input is not JSON.");
      const body = { type: v.type ?? type, id: v.id, input: v.input ?? {} };
      await post("actors", body);
      say(`Created ${body.type} ${body.id}`);
      go(link(["actors", body.type, body.id]));
    },
  });
}

function Fields({ values, set, type }) {
  const { data } = useLive("statecharts");
  const names = (data?.data ?? []).map((m) => m.name);
  const name = values.type ?? type;
  const machine = useLive(name && names.includes(name) ? `statecharts/${segment(name)}` : null);
  const schema = machine.data?.input_schema;
  useEffect(() => { if (schema && values.input === undefined) set({ input: sample(schema) }); }, [schema]);
  return html`<div aria-busy=${data === null || machine.loading}><div class="side">
      <${Field} label="Type"><input type="text" list="statechart-names" required autofocus value=${name} onInput=${(e) => set({ type: e.target.value })} /><datalist id="statechart-names">${names.map((n) => html`<option value=${n} />`)}</datalist><//>
      <${Field} label="Id"><input type="text" required value=${values.id ?? ""} onInput=${(e) => set({ id: e.target.value })} /><//>
    </div>
    <${JSONField} key=${JSON.stringify(schema)} label="Input" schema=${schema} value=${values.input ?? {}} onChange=${(v, ok) => set(ok ? { input: v, broken: false } : { broken: true })} /></div>`;
}

/** sendEvent asks for an event and sends it to an actor. */
export function sendEvent(actor, type = "") {
  const events = actor.events ?? [];
  return ask({
    title: `Send an event to ${actor.type} ${actor.id}`, confirm: "Send", wide: true,
    fields: (props) => html`<${EventFields} ...${props} events=${events} type=${type} />`,
    act: async (v) => {
      if (v.broken) throw new Error("The data is not JSON.");
      const name = v.type ?? (type || events[0]?.type);
      await post(`${at(actor)}/events`, { ...v.data, type: name });
      say(`Sent ${name}`);
    },
  });
}

function EventFields({ values, set, events, type }) {
  const name = values.type ?? (type || events[0]?.type) ?? "";
  const schema = events.find((e) => e.type === name)?.schema;
  return html`<${Field} label="Event" hint=${events.length ? `Accepted now: ${events.map((e) => e.type).join(", ")}` : ""}>
      <input type="text" list="event-names" required autofocus value=${name} onInput=${(e) => set({ type: e.target.value })} /><datalist id="event-names">${events.map((e) => html`<option value=${e.type} />`)}</datalist><//>
    <${JSONField} key=${name} label="Data" schema=${schema} value=${values.data ?? sample(schema)} onChange=${(v, ok) => set(ok ? { data: v, broken: false } : { broken: true })} />`;
}
