// One schedule: its ticks and the instances that it starts, with a form to change it.
import { html, useRef, useState } from "../lib.mjs";
import { because, get, patch, segment, tagOf } from "../api.mjs";
import { useLive } from "../live.mjs";
import { link } from "../router.mjs";
import { useKeys } from "../keyboard.mjs";
import { Actions, perform, usable } from "../action.mjs";
import { may } from "../me.mjs";
import { describe, say } from "../toast.mjs";
import { Status } from "../status.mjs";
import { At, When, exact, inZone } from "../time.mjs";
import { JSONView } from "../json.mjs";
import { JSONField, ReasonField, whole } from "../form.mjs";
import { stringify } from "../exact.mjs";
import { ErrorText, Facts, Failure, Heading, Loading, Panel, Table } from "../parts.mjs";
import { AuditLink } from "./audit.mjs";
import { actions, stateOf, unread } from "./schedules.mjs";
import { Timing } from "./timing.mjs";

export function Schedule({ names: [name] }) {
  const { data: s, error, refresh } = useLive(`schedules/${segment(name)}`, {}, { kinds: ["schedules"], every: 15_000 });
  const definition = useLive(s ? `definitions/${segment(s.definition)}` : null);
  useKeys(keysOf(s, refresh));
  if (!s) return error ? html`<${Heading} title=${name} kind="Schedule" /><${Failure} error=${error} retry=${refresh} />` : html`<${Loading} />`;
  return html`<${Heading} title=${s.name} kind="Schedule">
      <${AuditLink} kind="schedules" target=${s.name} />
      <a class="button" href=${link(["instances"], { definition: s.definition })}>Instances of ${s.definition}</a>
      <${Actions} actions=${actions} row=${s} one="schedule" after=${refresh} />
    <//>
    <${Failure} error=${error} />
    <div class="lead"><${Status} of=${stateOf(s)} /><span>${s.text || s.spec}</span></div>
    <${ErrorText} text=${s.error && `${unread(s)}. It will not fire until it is set again.`} />
    <div class="columns">
      <div>${may("operator") ? html`<${Change} of=${s} schema=${definition.data?.schema} loading=${definition.loading} after=${refresh} />`
        : html`<${Panel} title="State"><${JSONView} value=${s.state} label="State" /><//>`}</div>
      <div>
        <${Panel} title=${s.paused ? "Next ticks (paused)" : "Next ticks"}><${Ticks} of=${s} /><//>
        <${Panel} title="Details"><${Facts} of=${facts(s)} /><//>
      </div>
    </div>
    <${Panel} title="Raw" cls="full"><${JSONView} value=${s} open=${1} label="Raw JSON" /><//>`;
}

function keysOf(s, refresh) {
  const keys = { e: s && may("operator") && ["Edit", () => requestAnimationFrame(() => document.querySelector("[data-change] input")?.focus())] };
  for (const a of actions) if (a.key && s && usable(a, s)) keys[a.key] = [a.label, () => Promise.resolve(perform(a, s, "schedule")).then(refresh)];
  return keys;
}

const facts = (s) => ({
  Starts: html`<a href=${link(["definitions", s.definition])}>${s.definition}</a> <span class="muted">version ${s.version}</span>`, Expression: html`<code>${s.spec}</code>`, "Time zone": s.zone, "Missed ticks": s.missed,
  "Last tick": html`<${At} at=${s.last_at} none="never" />`, Queue: s.start?.queue, Priority: s.start?.priority !== "normal" && s.start?.priority,
  Deadline: s.start?.deadline !== "0s" && s.start?.deadline, "Partition key": s.start?.partition_key, "Unique key": s.start?.unique_key,
});

// Ticks are shown in the schedule's own zone and in the reader's.
function Ticks({ of }) {
  const times = (of.next ?? []).length ? of.next : [of.next_at].filter(Boolean);
  const same = times.every((t) => inZone(t, of.zone) === exact(Date.parse(t)));
  return html`<${Table} title="Next ticks" rows=${times} keyOf=${(t) => t} empty="No further runs." columns=${[
    ["When", (t) => html`<${When} at=${t} />`], [of.zone || "UTC", (t) => inZone(t, of.zone)], !same && ["Your time", (t) => exact(Date.parse(t))],
  ].filter(Boolean)} />`;
}

// Change is the form of a schedule. It sends only the changed fields, so fields that are not
// shown keep their values. The server accepts the change only for the version that the
// operator has seen: concurrent changes are reported, not merged.
function Change({ of: read, schema, loading, after }) {
  const path = `schedules/${segment(read.name)}`;
  const [edits, setEdits] = useState({});
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const latest = useRef(edits); // the latest input, even if it is not rendered yet
  const [why, setWhy] = useState("");
  const reason = useRef(why); // like latest
  const explain = (text) => setWhy((reason.current = text));
  const newer = useRef(null); // the schedule that was read here, until the page has read it too
  const begun = useRef(null); // the schedule that is edited
  const of = begun.current ?? (newer.current?.than === read ? newer.current.it : read);
  const [round, follow] = useRound(of.state, begun.current);
  const take = (it) => { newer.current = { it, than: read }; };
  const set = (v) => { begun.current ??= of; setEdits((latest.current = { ...latest.current, ...v })); };
  const reset = () => { begun.current = null; setEdits((latest.current = {})); setError(null); explain(""); follow(); };
  const { broken, ...changed } = changesOf(of, edits);
  const retimed = changed.spec !== undefined || changed.zone !== undefined;
  const dirty = broken || Object.keys(changed).length > 0;
  async function submit(e) {
    e.preventDefault();
    setBusy(true);
    try {
      const sent = latest.current;
      const { broken, ...body } = changesOf(of, sent);
      if (broken) throw new Error("The state is not JSON.");
      if (body.state !== undefined) whole(body.state);
      const saved = await because(reason.current, () => patch(path, body, tagOf(of)));
      say(`Saved ${of.name}`);
      const left = changesOf(sent, latest.current); // the input since the request was sent
      take(saved);
      begun.current = Object.keys(left).length > 0 ? saved : null;
      follow(saved.state);
      setEdits((latest.current = left));
      setError(null);
      explain("");
      after();
    } catch (err) {
      setError(err);
    }
    setBusy(false);
  }
  async function load() {
    try {
      take(await get(path));
      reset();
      after();
    } catch (err) {
      setError(err);
    }
  }
  return html`<${Panel} title="Change the schedule"><form data-change onSubmit=${submit}>
    <${Timing} values=${{ ...of, ...edits }} set=${set} preview=${retimed} />
    <label class="check"><input type="checkbox" name="paused" checked=${edits.paused ?? of.paused} onChange=${(e) => set({ paused: e.target.checked })} /> Paused</label>
    ${!loading && html`<${JSONField} key=${round} label="State of new instances" schema=${schema} value=${edits.state ?? of.state} onChange=${(v, ok) => set(ok ? { state: v ?? {}, broken: false } : { broken: true })} />`}
    <${ReasonField} values=${{ why }} set=${(v) => explain(v.why)} />
    ${error && html`<${Refusal} error=${error} load=${load} />`}
    <p class="muted">${retimed ? "The next tick will be the first one after now." : "The ticks do not change."} A program that sets this schedule at its start will overwrite your changes.</p>
    <div class="buttons"><button type="button" disabled=${!dirty} onClick=${reset}>Discard changes</button><button class="primary" data-save disabled=${!dirty || busy}>Save</button></div>
  </form><//>`;
}

// Refusal shows why nothing was saved.
function Refusal({ error, load }) {
  if (error.code !== "precondition_failed") return html`<p class="wrong" role="alert">${describe(error)}</p>`;
  return html`<div role="alert" data-outdated><p class="wrong">This schedule was changed by another user since you started editing. Your changes are not saved.</p>
    <p><button type="button" onClick=${load}>Load the current version</button> <span class="muted">This discards your changes.</span></p></div>`;
}

// useRound counts the resets of fields that keep their own text. A reset is due when the value
// changes while it is not being edited, and when follow is called without the value that the
// fields already show.
function useRound(value, edited) {
  const shown = useRef({ round: 0, text: stringify(value) });
  const text = stringify(value);
  if (!edited && shown.current.text !== text) shown.current = { round: shown.current.round + 1, text };
  const follow = (v) => { shown.current = v === undefined ? { round: shown.current.round + 1, text: shown.current.text } : { ...shown.current, text: stringify(v) }; };
  return [shown.current.round, follow];
}

// changesOf omits edits that restore the current value.
const changesOf = (of, edits) => Object.fromEntries(Object.entries(edits).filter(([name, v]) => (name === "broken" ? v : stringify(v) !== stringify(of[name]))));
