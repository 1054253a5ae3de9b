// Tasks: the queue whose logic is functions of the database.
import { html, own } from "../lib.mjs";
import { post, segment } from "../api.mjs";
import { useLive } from "../live.mjs";
import { go, link } from "../router.mjs";
import { useKeys } from "../keyboard.mjs";
import { Actions, perform, usable } from "../action.mjs";
import { ask } from "../dialog.mjs";
import { say } from "../toast.mjs";
import { List } from "../list.mjs";
import { ID, Short } from "../copy.mjs";
import { Status, Tries, runnable, waiting } from "../status.mjs";
import { At, When } from "../time.mjs";
import { JSONView } from "../json.mjs";
import { Field, JSONField } from "../form.mjs";
import { Attempts, Retrying } from "../attempts.mjs";
import { Timeline } from "../timeline.mjs";
import { ErrorText, Facts, Failure, Heading, Loading, Panel, Table } from "../parts.mjs";
import { AuditLink } from "./audit.mjs";

const statuses = ["ready", "running", "retrying", "scheduled", "done", "failed", "quarantined", "cancelled"];

const actions = [
  { name: "retry", label: "Retry", past: "retried", key: "r", statuses: ["failed", "quarantined"], run: (t) => post(`tasks/${segment(t.id)}/retry`) },
  { name: "run", label: "Run now", past: "run now", key: "R", statuses: runnable, run: (t) => post(`tasks/${segment(t.id)}/run`) },
  { name: "cancel", label: "Cancel", past: "cancelled", key: "c", danger: true, statuses: waiting, run: (t) => post(`tasks/${segment(t.id)}/cancel`), question: (t) => `${t.type} ${t.id} will not run.` },
];

const spec = {
  kind: "tasks", one: "task", title: "Tasks", path: "tasks", bulk: "tasks/actions",
  about: "Rows of a queue whose logic is functions of the database.",
  filters: { type: "type", status: statuses }, statuses,
  id: (t) => String(t.id), href: (t) => link(["tasks", t.id]), actions,
  create: { label: "Start a business process…", open: start },
  empty: "No task matches.",
  columns: [
    { title: "Task", cell: (t) => html`<b>${t.type}</b> <${Short} id=${t.id} />` },
    { title: "Status", cell: (t) => html`<${Status} of=${t.status} /><${Tries} of=${t} />` },
    { title: "Attempts", cell: (t) => t.attempts ?? 0 },
    { title: "Scheduled", cell: (t) => html`<${When} at=${t.scheduled_at} />` },
    { title: "Finished", cls: "minor", cell: (t) => html`<${When} at=${t.finished_at} />` },
    { title: "Error", cls: "minor", cell: (t) => t.error && html`<span class="clip wrong">${t.error.split("\n")[0]}</span>` },
  ],
};

export const Tasks = () => html`<${List} spec=${spec} />`;

const processes = {
  email: { from: "shop@example.com", to: "you@example.com", subject: "Hello", text: "It works." },
  sms: { from: "+15550100", to: "+15550199", body: "It works." },
};

// start starts a business process, such as sending an email.
function start() {
  return ask({
    title: "Start a business process", confirm: "Start", wide: true,
    fields: ({ values, set }) => html`
      <${Field} label="Business process" hint="email or sms to send a message, or a type of task"><input type="text" list="processes" required autofocus value=${values.name ?? "email"} onInput=${(e) => set({ name: e.target.value })} />
        <datalist id="processes">${Object.keys(processes).map((n) => html`<option value=${n} />`)}</datalist><//>
      <${JSONField} key=${values.name} label="Payload" value=${values.payload ?? own(processes, values.name ?? "email") ?? {}} onChange=${(v, ok) => set(ok ? { payload: v, broken: false } : { broken: true })} />`,
    act: async (v) => {
      if (v.broken) throw new Error("The payload is not JSON.");
      const name = v.name ?? "email";
      const started = await post(`processes/${segment(name)}`, { payload: v.payload ?? own(processes, name) ?? {} });
      say(`Started ${name}`);
      if (started?.id) go(link(["tasks", started.id]));
    },
  });
}

export function Task({ names: [id] }) {
  const { data: t, error, refresh } = useLive(`tasks/${segment(id)}`, {}, { kinds: ["tasks"], id });
  const keys = {};
  for (const a of actions) if (t && usable(a, t)) keys[a.key] = [a.label, () => Promise.resolve(perform(a, t, "task")).then(refresh)];
  useKeys(keys);
  if (!t) return error ? html`<${Heading} title=${id} kind="Task" /><${Failure} error=${error} retry=${refresh} />` : html`<${Loading} />`;
  return html`<${Heading} title=${t.type} kind="Task"><${AuditLink} kind="tasks" target=${t.id} /><${Actions} actions=${actions} row=${t} one="task" after=${refresh} /><//>
    <${Failure} error=${error} />
    <div class="lead"><${Status} of=${t.status} /><${ID} id=${t.id} /></div>
    <${Retrying} of=${t} />
    <div class="columns">
      <div>
        ${t.facts?.length > 0 && html`<${Panel} title="Facts of the business process"><${Timeline} entries=${t.facts.map(fact)} /><//>`}
        <${Panel} title="Attempts"><${Attempts} of=${t} begun=${["Enqueued", t.enqueued_at]} /><//>
        <${Panel} title="Errors"><${Table} title="Errors" rows=${t.errors} empty="No errors." keyOf=${(e) => e.id} columns=${[["When", (e) => html`<${When} at=${e.created_at} />`], ["Error", (e) => html`<${ErrorText} text=${e.message} />`]]} /><//>
      </div>
      <div>
        <${Panel} title="Details"><${Facts} of=${{ Attempts: String(t.attempts ?? 0), Crashes: t.crashes || "", Enqueued: html`<${At} at=${t.enqueued_at} />`, Scheduled: html`<${At} at=${t.scheduled_at} />`, Claimed: t.dequeued_at && html`<${At} at=${t.dequeued_at} />`,
          Finished: t.finished_at && html`<${At} at=${t.finished_at} />`, Worker: t.worker, "Lease expires": t.lease_expires_at && html`<${When} at=${t.lease_expires_at} />` }} /><//>
        <${Panel} title="Payload"><${JSONView} value=${t.payload} label="Payload" /><//>
        ${t.outcome && html`<${Panel} title="Outcome"><${JSONView} value=${t.outcome} label="Outcome" /><//>`}
      </div>
    </div>
    <${Panel} title="Raw" cls="full"><${JSONView} value=${t} open=${1} label="Raw JSON" /><//>`;
}

const fact = (f) => ({ at: f.at, title: f.kind, how: own({ failed: "error", succeeded: "done" }, f.kind) ?? "next", text: `attempt ${f.attempt}`, error: f.error });
