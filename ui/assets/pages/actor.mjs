// One actor: its statechart with the active states highlighted, a countdown of its
// timers, and its history.
import { html, useState } from "../lib.mjs";
import { segment } from "../api.mjs";
import { useLive } from "../live.mjs";
import { link } from "../router.mjs";
import { useKeys } from "../keyboard.mjs";
import { Actions, perform, usable } from "../action.mjs";
import { may } from "../me.mjs";
import { ID } from "../copy.mjs";
import { Status } from "../status.mjs";
import { At, When, eventText } from "../time.mjs";
import { JSONView } from "../json.mjs";
import { StatechartDrawing } from "../statechart.mjs";
import { Timeline, Scrubber } from "../timeline.mjs";
import { ErrorText, Facts, Failure, Heading, Loading, Panel, Table } from "../parts.mjs";
import { dueActions } from "../due.mjs";
import { AuditLink } from "./audit.mjs";
import { actions, at as pathOf, sendEvent } from "./actors.mjs";

const shown = 200; // the last transitions of the history

export function Actor({ names: [type, id] }) {
  const path = pathOf({ type, id });
  const live = { kinds: ["actors"], id: `${type}/${id}` };
  const { data: actor, error, refresh } = useLive(path, {}, live);
  const log = useLive(actor ? `${path}/log` : null, { after: Math.max(0, Number(actor?.version ?? 0) - shown) || "", limit: shown }, live);
  const [at, setAt] = useState(null);
  useKeys(keysOf(actor, refresh));
  if (!actor) return error ? html`<${Heading} title=${id} kind=${type} /><${Failure} error=${error} retry=${refresh} />` : html`<${Loading} />`;

  const entries = log.data?.data ?? [];
  const current = at === null ? entries.length - 1 : Math.min(at, entries.length - 1);
  const past = at !== null && current < entries.length - 1;
  const active = past ? entries[current].to ?? [] : actor.active ?? [];
  const pick = (i) => setAt(i === entries.length - 1 ? null : i);
  return html`<${Heading} title=${actor.id} kind=${actor.type}>
      <${AuditLink} kind="actors" target=${`${actor.type}/${actor.id}`} />
      ${may("operator") && actor.status === "active" && html`<button class="primary" data-action="send" onClick=${() => sendEvent(actor)}>Send event…</button>`}
      <${Actions} actions=${actions} row=${actor} one="actor" after=${refresh} />
    <//>
    <${Failure} error=${error} />
    <div class="lead"><${Status} of=${actor.status} /><code>${actor.state}</code><${ID} id=${actor.id} /></div>
    <${ErrorText} text=${typeof actor.error === "string" ? actor.error : actor.error && JSON.stringify(actor.error)} open=${true} />
    <${Panel} title=${past ? "Statechart at this transition" : "Statechart"} cls="full" actions=${html`<a href=${link(["statecharts", actor.statechart?.name ?? actor.type], { version: actor.statechart?.version })}>Definition</a>`}>
      <${StatechartDrawing} name=${actor.statechart?.name ?? actor.type} version=${actor.statechart?.version} active=${active} before=${entries[current]?.from} timers=${past ? [] : actor.timers ?? []} />
      <${Scrubber} n=${entries.length} at=${current} set=${pick} text=${eventText(entries[current]?.event?.type) || entries[current]?.kind || ""} />
      ${may("operator") && actor.status === "active" && actor.events?.length > 0 && html`<div class="actions" role="group" aria-label="Send">${actor.events.map((e) => html`<button key=${e.type} class="small" data-event=${e.type} onClick=${() => sendEvent(actor, e.type)}>${e.type}</button>`)}</div>`}
    <//>
    <div class="columns">
      <div>
        <${Panel} title="History"><${Timeline} entries=${entries.map(entry)} current=${past ? current : undefined} onPick=${pick} newest=${true} /><//>
        ${actor.children?.length > 0 && html`<${Panel} title="Children"><ul class="tree">${actor.children.map((c) => html`<${Child} key=${c.id} of=${c} />`)}</ul><//>`}
        <${Panel} title="Input"><${JSONView} value=${actor.input} label="Input" /><//>
      </div>
      <div>
        <${Panel} title="Timers"><${Table} title="Timers" rows=${actor.timers} empty="No timers." keyOf=${(t) => t.key} columns=${[
          ["Fires", (t) => (t.error ? html`<b title=${t.error}>quarantined</b>` : html`<b><${When} at=${t.due_at} /></b>`)],
          ["Event", (t) => html`${timerText(t)}${t.leads?.length > 0 && html` <span class="muted">→ ${t.leads.map(shortState).join(", ")}</span>`}`],
          ["", (t) => html`<${Actions} actions=${dueActions} row=${timer(actor, t)} one="timer" small=${true} after=${refresh} />`],
        ]} /><//>
        <${Panel} title="Context"><${JSONView} value=${actor.context} label="Context" /><//>
        <${Panel} title="Details"><${Facts} of=${{ Statechart: actor.statechart && `${actor.statechart.name} version ${actor.statechart.version}`, Version: String(actor.version ?? ""), Caller: actor.caller && `${actor.caller.type} ${actor.caller.id}`,
          Created: html`<${At} at=${actor.created_at} />`, Changed: html`<${At} at=${actor.updated_at} />` }} /><//>
      </div>
    </div>
    <${Panel} title="Raw" cls="full"><${JSONView} value=${actor} open=${1} label="Raw JSON" /><//>`;
}

function keysOf(actor, refresh) {
  if (!actor) return {};
  const keys = { s: may("operator") && actor.status === "active" && ["Send an event", () => sendEvent(actor)] };
  for (const a of actions) keys[a.key] = usable(a, actor) && [a.label, () => Promise.resolve(perform(a, actor, "actor")).then(refresh)];
  return keys;
}

const entry = (e) => ({
  at: e.at, title: eventText(e.event?.type) || e.kind || "event", how: e.kind === "timer" ? "await" : e.kind ?? "next",
  text: (e.to ?? []).filter((s) => !(e.from ?? []).includes(s)).map(shortState).join(", "),
});

const timerText = (t) => eventText(t.event?.type ?? t.event ?? t.type ?? t.key);
const shortState = (id) => id.split(".").slice(1).join(".") || id;

// timer gives a timer the actions of all other scheduled work.
function timer(actor, t) {
  const base = `${pathOf(actor)}/timers/${segment(t.key)}`;
  return { ...t, id: t.key, name: timerText(t), actions: { move: `${base}/move`, skip: `${base}/skip`, fire: `${base}/fire` } };
}

function Child({ of }) {
  return html`<li>${of.id} <${Status} of=${of.status} /> <code>${of.state}</code>
    ${of.children?.length > 0 && html`<ul>${of.children.map((c) => html`<${Child} key=${c.id} of=${c} />`)}</ul>`}</li>`;
}

