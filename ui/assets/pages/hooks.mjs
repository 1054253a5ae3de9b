// Hooks: calls that run after a commit.
import { html } from "../lib.mjs";
import { del, post, segment } from "../api.mjs";
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
import { Field, JSONField, whole } from "../form.mjs";
import { Attempts, Retrying } from "../attempts.mjs";
import { ErrorText, Facts, Failure, Heading, Loading, Panel } from "../parts.mjs";
import { AuditLink } from "./audit.mjs";

const statuses = ["ready", "running", "retrying", "scheduled", "done", "failed", "quarantined", "cancelled"];
const at = (h) => `hooks/${segment(h.id)}`;

const actions = [
  { name: "retry", label: "Retry", past: "retried", key: "r", statuses: ["failed", "quarantined", "cancelled"], run: (h) => post(`${at(h)}/retry`) },
  { name: "run", label: "Run now", past: "run now", key: "R", statuses: runnable, run: (h) => post(`${at(h)}/run`) },
  { name: "replay", label: "Replay…", key: "e", single: true, when: (h) => h.payload !== undefined, open: replay },
  { name: "cancel", label: "Cancel", past: "cancelled", key: "c", danger: true, statuses: waiting, run: (h) => post(`${at(h)}/cancel`), question: (h) => `${h.name} will not run.` },
  { name: "delete", label: "Delete", past: "deleted", key: "d", danger: true, single: true, statuses: ["done", "failed", "quarantined", "cancelled"], run: (h) => del(at(h)).then(() => go(link(["hooks"]))),
    question: (h) => `${h.name} ${h.id} and its attempts will be removed.` },
];

const spec = {
  kind: "hooks", one: "hook", title: "Hooks", path: "hooks", bulk: "hooks/actions",
  about: "Calls that run after a commit, at least once.",
  filters: { namespace: "namespace", name: "name", status: statuses },
  statuses, id: (h) => h.id, href: (h) => link(["hooks", h.id]), actions: actions.filter((a) => !a.single),
  create: { label: "Trigger…", open: trigger },
  empty: "No hook matches.",
  columns: [
    { title: "Hook", cell: (h) => html`<b>${h.name}</b> <${Short} id=${h.id} />` },
    { title: "Status", cell: (h) => html`<${Status} of=${h.status} /><${Tries} of=${h} />` },
    { title: "Namespace", cls: "minor", cell: (h) => h.namespace },
    { title: "Attempts", cell: (h) => `${h.attempts ?? 0}${h.max_attempts ? ` of ${h.max_attempts}` : ""}` },
    { title: "Due", cell: (h) => html`<${When} at=${h.due_at} />` },
    { title: "Error", cls: "minor", cell: (h) => h.error && html`<span class=${h.status === "done" ? "clip muted" : "clip wrong"}>${h.status === "done" && "earlier: "}${h.error.split("\n")[0]}</span>` },
  ],
};

export const Hooks = () => html`<${List} spec=${spec} />`;

function trigger() {
  return ask({
    title: "Trigger a hook", confirm: "Trigger", wide: true,
    fields: ({ values, set }) => html`<div class="side">
        <${Field} label="Namespace"><input type="text" required autofocus value=${values.namespace ?? ""} onInput=${(e) => set({ namespace: e.target.value })} /><//>
        <${Field} label="Name"><input type="text" required value=${values.name ?? ""} onInput=${(e) => set({ name: e.target.value })} /><//>
      </div>
      <${JSONField} label="Payload" value=${values.payload ?? {}} onChange=${(v, ok) => set(ok ? { payload: v, broken: false } : { broken: true })} />`,
    act: async (v) => {
      if (v.broken) throw new Error("The payload is not JSON.");
      const made = await post("hooks", { namespace: v.namespace, name: v.name, payload: v.payload ?? {} });
      say(`Triggered ${v.name}`);
      if (made?.id) go(link(["hooks", made.id]));
    },
  });
}

// replay creates a new hook from an existing one, optionally with another payload.
function replay(hook) {
  return ask({
    title: `Replay ${hook.name}`, text: "This creates a new hook with this payload. The existing hook does not change.", confirm: "Replay", wide: true,
    fields: ({ values, set }) => html`<${JSONField} label="Payload" rows=${14} value=${values.payload ?? hook.payload} onChange=${(v, ok) => set(ok ? { payload: v, broken: false } : { broken: true })} />`,
    act: async (v) => {
      if (v.broken) throw new Error("The payload is not JSON.");
      const made = await post(`${at(hook)}/replay`, v.payload === undefined ? {} : { payload: whole(v.payload) });
      say(`Replayed ${hook.name}`);
      if (made?.id) go(link(["hooks", made.id]));
    },
  });
}

export function Hook({ names: [id] }) {
  const { data: h, error, refresh } = useLive(`hooks/${segment(id)}`, {}, { kinds: ["hooks"], id });
  const keys = {};
  for (const a of actions) if (h && usable(a, h)) keys[a.key] = [a.label, () => Promise.resolve(perform(a, h, "hook")).then(refresh)];
  useKeys(keys);
  if (!h) return error ? html`<${Heading} title=${id} kind="Hook" /><${Failure} error=${error} retry=${refresh} />` : html`<${Loading} />`;
  return html`<${Heading} title=${h.name} kind="Hook"><${AuditLink} kind="hooks" target=${h.id} /><${Actions} actions=${actions} row=${h} one="hook" after=${refresh} /><//>
    <${Failure} error=${error} />
    <div class="lead"><${Status} of=${h.status} /><${ID} id=${h.id} /></div>
    <${Retrying} of=${h} />
    <${ErrorText} text=${h.error} open=${true} />
    <div class="columns">
      <div>
        <${Panel} title="Attempts"><${Attempts} of=${h} begun=${["Triggered", h.created_at]} /><//>
        <${Panel} title="Payload"><${JSONView} value=${h.payload} label="Payload" /><//>
      </div>
      <${Panel} title="Details"><${Facts} of=${{ Namespace: h.namespace, Attempts: `${h.attempts ?? 0}${h.max_attempts ? ` of ${h.max_attempts}` : ""}`, Crashes: h.crashes || "", Created: html`<${At} at=${h.created_at} />`, Due: html`<${At} at=${h.due_at} />`,
        "Last attempt": h.last_attempt_at && html`<${At} at=${h.last_attempt_at} />`, Finished: h.finished_at && html`<${At} at=${h.finished_at} />`, Worker: h.worker, "Lease expires": h.lease_expires_at && html`<${When} at=${h.lease_expires_at} />`, "Unit of work": h.unit_id }} />
        ${h.retry && html`<h3>Retry policy</h3><${JSONView} value=${h.retry} label="Retry policy" />`}<//>
    </div>
    <${Panel} title="Raw" cls="full"><${JSONView} value=${h} open=${1} label="Raw JSON" /><//>`;
}
