// Instances of state machines.
import { html, useEffect } from "../lib.mjs";
import { Short } from "../copy.mjs";
import { del, post, segment } from "../api.mjs";
import { useLive } from "../live.mjs";
import { go, link, route } from "../router.mjs";
import { ask } from "../dialog.mjs";
import { say } from "../toast.mjs";
import { List } from "../list.mjs";
import { Status, Tries, runnable } from "../status.mjs";
import { When } from "../time.mjs";
import { JSONField, Field, sample, whole } from "../form.mjs";

export const statuses = ["ready", "running", "retrying", "scheduled", "waiting", "no_worker", "done", "stopped", "failed", "cancelled", "quarantined"];
const finished = ["done", "stopped", "failed", "cancelled", "quarantined"];
const groups = { live: statuses.filter((s) => !finished.includes(s)), finished };

/** actions on an instance. */
export const actions = [
  { name: "retry", label: "Retry", past: "retried", key: "r", statuses: ["failed", "quarantined", "stopped", "cancelled"], all: ["failed", "quarantined"], run: (i) => post(`instances/${segment(i.id)}/retry`) },
  { name: "run", label: "Run now", past: "run now", key: "R", statuses: runnable, run: (i) => post(`instances/${segment(i.id)}/run`) },
  { name: "cancel", label: "Cancel", past: "cancelled", key: "c", danger: true, statuses: groups.live, run: (i, why) => post(`instances/${segment(i.id)}/cancel`, { reason: why?.trim() || "cancelled in the dashboard" }),
    when: (i) => !i.cancel_reason, question: (i) => (i.on_cancel ? `${i.definition} ${i.id} will continue with its cancel step ${i.on_cancel}. Its children will be cancelled.` : `${i.definition} ${i.id} and its children will be cancelled. Retry restores all of them.`) },
  { name: "terminate", label: "Terminate", past: "terminated", key: "T", danger: true, some: true, statuses: groups.live, when: (i) => i.on_cancel, run: (i, why) => post(`instances/${segment(i.id)}/terminate`, { reason: why?.trim() || "terminated in the dashboard" }),
    question: (i) => `${i.definition} ${i.id} will end without ${i.cancel_reason ? "completing" : "running"} its cancel step ${i.on_cancel}: nothing will be compensated. Its children will be cancelled. Retry restores all of them.` },
  { name: "delete", label: "Delete", past: "deleted", key: "d", danger: true, statuses: finished, all: ["failed", "quarantined"], run: (i) => del(`instances/${segment(i.id)}`), question: (i) => `${i.definition} ${i.id} and its history will be removed.` },
];

const spec = {
  kind: "instances", one: "instance", title: "Instances", path: "instances", bulk: "instances/actions",
  about: "Instances of state machines, newest first.",
  filters: { definition: "name of the state machine", status: [...Object.keys(groups), ...statuses], waits_for: ["signal", "children", "turn"], step: "current step", queue: "queue", parent: "id of the parent", unique_key: "unique key" },
  statuses: ["ready", "running", "retrying", "scheduled", "waiting", "done", "stopped", "failed", "quarantined"],
  groups, id: (i) => i.id, href: (i) => link(["instances", i.id]), actions,
  create: { label: "Start…", open: () => startInstance({ definition: route.value.query.get("definition") ?? "" }) },
  empty: "No instance matches. Start one with the button above, from Go with fsm.Start, or with POST /v1/instances.",
  columns: [
    { title: "Instance", cell: (i) => html`<b>${i.definition}</b> <${Short} id=${i.id} />` },
    { title: "Status", cell: (i) => html`<${Status} of=${i.status} waits=${i.waits_for} /><${Tries} of=${i} />` },
    { title: "Step", cell: (i) => html`${i.step}${i.attempt > 1 && i.status !== "retrying" && html` <span class="muted">attempt ${i.attempt}</span>`}` },
    { title: "Queue", cls: "minor", cell: (i) => i.queue },
    { title: "Created", cell: (i) => html`<${When} at=${i.created_at} />` },
    { title: "Due or finished", cls: "minor", cell: (i) => html`<${When} at=${i.finished_at ?? i.due_at} />` },
    { title: "Error", cls: "minor", cell: (i) => i.error && html`<span class="clip wrong">${i.error.split("\n")[0]}</span>` },
  ],
};

export const Instances = () => html`<${List} spec=${spec} />`;

/** startInstance asks for a definition and an initial state, and starts an instance. */
export function startInstance({ definition = "", state, keep = {} }) {
  return ask({
    title: "Start a state machine", confirm: "Start", wide: true,
    fields: (props) => html`<${StartFields} ...${props} definition=${definition} state=${state} keep=${keep} />`,
    act: async (v) => {
      if (v.broken) throw new Error("The state is not JSON.");
      const name = v.definition ?? definition;
      const { unique_key, ...rest } = name === definition ? keep : {};
      const body = { definition: name, state: whole(v.state ?? state ?? {}), ...rest };
      const key = v.unique_key ?? unique_key;
      if (key) body.unique_key = key;
      if (v.delay) body.delay = v.delay;
      const started = await post("instances", body);
      say(started.duplicate ? "An unfinished instance has this unique key" : `Started ${name}`);
      go(link(["instances", started.id]));
    },
  });
}

function StartFields({ values, set, definition, state, keep }) {
  const { data } = useLive("definitions");
  const names = (data?.data ?? []).map((d) => d.name);
  const name = values.definition ?? definition;
  const known = useLive(name && names.includes(name) ? `definitions/${segment(name)}` : null);
  const shape = known.data?.schema;
  useEffect(() => { if (shape && values.state === undefined && state === undefined) set({ state: sample(shape) }); }, [shape]);
  return html`<div aria-busy=${data === null || known.loading}>
    <${Field} label="State machine"><input type="text" list="definition-names" required autofocus value=${name} onInput=${(e) => set({ definition: e.target.value })} /><datalist id="definition-names">${names.map((n) => html`<option value=${n} />`)}</datalist><//>
    <${JSONField} key=${JSON.stringify(shape)} label="State" schema=${shape} value=${values.state ?? state ?? sample(shape)} onChange=${(v, ok) => set(ok ? { state: v, broken: false } : { broken: true })} />
    <div class="side">
      <${Field} label="Unique key" hint="At most one unfinished instance has it"><input type="text" value=${values.unique_key ?? keep.unique_key ?? ""} onInput=${(e) => set({ unique_key: e.target.value })} /><//>
      <${Field} label="Delay" hint="For example 90s or 1h30m"><input type="text" pattern="([0-9.]+(ms|s|m|h))+" value=${values.delay ?? ""} onInput=${(e) => set({ delay: e.target.value })} /><//>
    </div>
    ${kept(keep) && html`<p class="muted">Keeps ${kept(keep)}. Starts with the newest version and the default scope of the unique key, without a parent and without a deadline.</p>`}</div>`;
}

// kept describes the properties of the old instance that the new one has.
const kept = ({ queue, priority, partition_key }) => [queue && `queue ${queue}`, priority && `priority ${priority}`, partition_key && `partition key ${partition_key}`].filter(Boolean).join(", ");

/** signal asks for a signal and sends it. */
export function signal(instance, names = [], schemas = {}) {
  return ask({
    title: "Send a signal", confirm: "Send", wide: true,
    fields: ({ values, set }) => html`
      <${Field} label="Name"><input type="text" list="signal-names" required autofocus value=${values.name ?? names[0] ?? ""} onInput=${(e) => set({ name: e.target.value })} /><datalist id="signal-names">${names.map((n) => html`<option value=${n} />`)}</datalist><//>
      <${JSONField} label="Payload" schema=${schemas[values.name ?? names[0]]} value=${values.payload ?? {}} onChange=${(v, ok) => set(ok ? { payload: v, broken: false } : { broken: true })} />
      <${Field} label="Deduplication key" hint="A second signal with the same name and key is dropped"><input type="text" value=${values.key ?? ""} onInput=${(e) => set({ key: e.target.value })} /><//>`,
    act: async (v) => {
      if (v.broken) throw new Error("The payload is not JSON.");
      const name = v.name ?? names[0];
      await post(`instances/${segment(instance.id)}/signals`, { name, payload: v.payload ?? {}, ...(v.key ? { key: v.key } : {}) });
      say(`Sent ${name}`);
    },
  });
}

