// One instance: its current step, its history, and what it waits for.
import { html, own, useMemo, useState } from "../lib.mjs";
import { segment } from "../api.mjs";
import { useLive } from "../live.mjs";
import { link } from "../router.mjs";
import { useKeys } from "../keyboard.mjs";
import { Actions, perform, usable } from "../action.mjs";
import { may } from "../me.mjs";
import { ID, Short, shorten } from "../copy.mjs";
import { Status } from "../status.mjs";
import { Retrying } from "../attempts.mjs";
import { At, When, relative, tick } from "../time.mjs";
import { JSONView } from "../json.mjs";
import { StepGraph } from "../draw.mjs";
import { Timeline, Scrubber } from "../timeline.mjs";
import { ErrorText, Facts, Failure, Heading, Loading, Panel, Table } from "../parts.mjs";
import { AuditLink } from "./audit.mjs";
import { actions, signal, startInstance } from "./instances.mjs";
import { Point, Unkept, failedRun, pointText, pointsOf, stepAt } from "./point.mjs";

export function Instance({ names: [id] }) {
  const path = `instances/${segment(id)}`;
  const live = { kinds: ["instances"], id };
  const { data: instance, error, refresh } = useLive(path, {}, live);
  const history = useLive(`${path}/history`, {}, live);
  const signals = useLive(`${path}/signals`, {}, live);
  const children = useLive(`${path}/children`, { limit: 200 }, { kinds: ["instances"] });
  const definition = useLive(instance ? `definitions/${segment(instance.definition)}` : null);
  const [at, setAt] = useState(null); // null follows the newest entry
  useInstanceKeys(instance, definition.data, refresh);
  if (!instance) return error ? html`<${Heading} title="Instance" /><${Failure} error=${error} retry=${refresh} />` : html`<${Loading} />`;

  const all = history.data?.data ?? [];
  const entries = pointsOf(all);
  const current = at === null ? entries.length - 1 : Math.min(at, entries.length - 1);
  const version = definition.data?.versions?.find((v) => v.version === instance.version);
  const past = at !== null && current < entries.length - 1;
  return html`<${Heading} title=${instance.definition} kind="Instance">
      <${AuditLink} kind="instances" target=${instance.id} />
      ${may("operator") && !instance.finished_at && html`<button data-action="signal" onClick=${() => signal(instance, signalNames(instance, definition.data))}>Send signal…</button>`}
      ${may("operator") && html`<button data-action="again" onClick=${() => startInstance({ definition: instance.definition, state: instance.state, keep: keptOf(instance) })}>Start again…</button>`}
      <${Actions} actions=${actions} row=${instance} one="instance" after=${refresh} />
    <//>
    <${Failure} error=${error} />
    <div class="lead"><${Status} of=${instance.status} waits=${instance.waits_for} /><${ID} id=${instance.id} /></div>
    <${Retrying} of=${instance} />
    <${Waiting} of=${instance} />
    <${ErrorText} text=${instance.error} open=${true} />
    ${version && html`<${Panel} title="Steps" cls="full"><${Path} ...${{ version, entries, current, instance, past }} />
      <${Scrubber} n=${entries.length} at=${current} set=${(i) => setAt(i === entries.length - 1 ? null : i)} text=${pointText(entries[current])} />
      ${entries.length > 1 && html`<${Point} at=${entries[current]} next=${entries[current + 1]} history=${all} instance=${instance} last=${!past} />`}
      ${history.data && html`<${Unkept} entries=${entries} instance=${instance} first=${version.first_step} />`}<//>`}
    <div class="columns">
      <div>
        <${Panel} title="Timeline"><${Timeline} entries=${all.map(entry)} current=${past ? all.indexOf(entries[current]) : undefined}
          onPick=${(i) => { const at = entries.indexOf(all[i]); if (at >= 0) setAt(at === entries.length - 1 ? null : at); }} /><//>
        <${Panel} title="Signals"><${Table} title="Signals" of=${signals} rows=${signals.data?.data} empty="No signals in the inbox." columns=${[
          ["Name", (s) => s.name], ["Sent", (s) => html`<${When} at=${s.created_at} />`], ["Received", (s) => (s.received ? "yes" : "no")], ["Payload", (s) => html`<${JSONView} value=${s.payload} open=${0} label=${`Payload of ${s.name}`} />`],
        ]} /><//>
        ${(children.data?.data?.length > 0 || instance.parent) && html`<${Panel} title="Parent and children"><${Family} instance=${instance} rows=${children.data?.data ?? []} /><//>`}
      </div>
      <div>
        <${Panel} title="Details"><${Facts} of=${facts(instance)} /><//>
        <${Panel} title=${past ? "State now" : "State"}><${JSONView} value=${instance.state} label="State" /><//>
        ${instance.result !== undefined && instance.result !== null && html`<${Panel} title="Result"><${JSONView} value=${instance.result} label="Result" /><//>`}
      </div>
    </div>
    <${Panel} title="Raw" cls="full"><${JSONView} value=${instance} open=${1} label="Raw JSON" /><//>`;
}

// keptOf has the properties that a new start keeps. Those that are not set are omitted.
const keptOf = (i) => Object.fromEntries(["unique_key", "partition_key", "queue", "priority"].filter((name) => i[name] && i[name] !== "normal").map((name) => [name, i[name]]));

const signalNames = (instance, definition) => [...new Set([...(instance.awaits ?? []), ...(definition?.signals ?? []).map((s) => s.name)])];

function useInstanceKeys(instance, definition, refresh) {
  const keys = { s: instance && !instance.finished_at && may("operator") && ["Send a signal", () => signal(instance, signalNames(instance, definition))] };
  for (const a of actions) keys[a.key] = instance && usable(a, instance) && [a.label, () => Promise.resolve(perform(a, instance, "instance")).then(refresh)];
  if (instance?.parent) keys.p = ["Go to the parent", () => document.querySelector("[data-parent]")?.click()];
  useKeys(keys);
}

// Waiting describes what the instance waits for.
function Waiting({ of }) {
  const until = of.awaits_until ? `; continues without it ${relative(Date.parse(of.awaits_until), tick.value)}` : "";
  const text = own({
    signal: `Waits for ${(of.awaits ?? []).join(" or ") || "a signal"}${until}.`,
    children: `Waits for ${of.children?.pending ?? "its"} of ${of.children?.total ?? "its"} children.`,
    scheduled: `Runs ${relative(Date.parse(of.due_at), tick.value)}.`,
    turn: "Waits for an earlier instance with the same partition key.",
    no_worker: "No running process serves this definition, version and step.",
    quarantined: "Quarantined after repeated crashes. Fix the cause, then retry.",
  }, of.waits_for ?? of.status);
  const cancelled = of.cancel_reason && !of.finished_at && `Was cancelled (${of.cancel_reason}) and continued with its cancel step${of.on_cancel ? ` ${of.on_cancel}` : ""}.`;
  return (cancelled || text) && html`<p class="waiting">${[cancelled, text].filter(Boolean).join(" ")}</p>`;
}

function Path({ version, entries, current, instance, past }) {
  const { taken, visits, last } = useMemo(() => walk(entries.slice(0, current + 1)), [entries, current]);
  const active = past ? stepAt(entries[current], version.first_step) : instance.step;
  return html`<${StepGraph} version=${version} active=${active} bad=${past ? Boolean(entries[current].error) : ["failed", "quarantined", "retrying"].includes(instance.status)} taken=${taken} visits=${visits} last=${last} />`;
}

// walk counts the edges and steps of a history.
function walk(entries) {
  const taken = new Map(), visits = new Map();
  let last;
  for (const e of entries) {
    if (!e.step) continue;
    visits.set(e.step, (visits.get(e.step) ?? 0) + 1);
    if (!e.next) continue;
    last = `${e.step}→${e.next}`;
    taken.set(last, (taken.get(last) ?? 0) + 1);
  }
  return { taken, visits, last };
}

const entry = (e) => ({
  at: e.at, duration_ms: e.duration_ms, title: e.step || e.outcome, how: failedRun(e) ? "error" : e.outcome, error: e.error,
  text: [e.attempt > 1 && `attempt ${e.attempt}`, e.step && (failedRun(e) ? "failed" : e.outcome), e.next && e.next !== e.step && `→ ${e.next}`, e.detail, e.worker && `on ${shorten(e.worker)}`].filter(Boolean).join(" "),
});

const facts = (i) => ({
  Step: i.step, Version: String(i.version ?? ""), Queue: i.queue, Priority: i.priority || "", Attempt: i.attempt > 1 ? i.attempt : "", Failures: i.failures ? `${i.failures}${i.max_attempts ? ` of ${i.max_attempts} attempts` : ""}` : "", Crashes: i.crashes || "",
  Created: html`<${At} at=${i.created_at} />`, Due: i.due_at && !i.finished_at && html`<${At} at=${i.due_at} />`,
  Deadline: i.deadline_at && html`<${At} at=${i.deadline_at} />`, Finished: i.finished_at && html`<${At} at=${i.finished_at} />`,
  "Unique key": i.unique_key, "Partition key": i.partition_key,
  "Unreceived signals": i.unreceived_signals || "", "Cancel step": i.on_cancel, "Cancel reason": i.cancel_reason,
});

// Family shows the parent and the children of an instance.
function Family({ instance, rows }) {
  const leaf = (i) => html`<a href=${link(["instances", i.id])}>${i.definition} <${Short} id=${i.id} /></a> <${Status} of=${i.status} /> <span class="muted">${i.step}</span>`;
  const own = html`<li><b>${instance.definition}</b> <${Short} id=${instance.id} /> <${Status} of=${instance.status} />
    ${rows.length > 0 && html`<ul>${rows.map((c) => html`<li key=${c.id}>${leaf(c)}</li>`)}</ul>`}</li>`;
  if (!instance.parent) return html`<ul class="tree">${own}</ul>`;
  return html`<ul class="tree"><li><a data-parent href=${link(["instances", instance.parent])}>parent <${Short} id=${instance.parent} /></a><ul>${own}</ul></li></ul>`;
}
