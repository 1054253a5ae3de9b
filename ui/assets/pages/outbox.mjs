// The outbox: the ordered record of committed units.
import { html } from "../lib.mjs";
import { useLive } from "../live.mjs";
import { alter, link, route } from "../router.mjs";
import { useKeys } from "../keyboard.mjs";
import { When } from "../time.mjs";
import { JSONView } from "../json.mjs";
import { Copy, Short } from "../copy.mjs";
import { ErrorText, Failure, Heading, Loading, Panel, Table } from "../parts.mjs";

const shown = 50;
const zero = "0".repeat(24); // before all entries

// State shows what a consumer does now, with its last error.
function State({ of }) {
  if (of.stopped) return html`<b>stopped</b> <${ErrorText} text=${of.error} />`;
  if (of.attempts > 0) return html`retrying <${When} at=${of.retry_at} /> <${ErrorText} text=${of.error} />`;
  return of.worker ? "running" : "";
}

// parts returns the mutations and events of an entry in the order in which they were recorded.
function parts(entry) {
  return [...(entry.mutations ?? []), ...(entry.events ?? [])].sort((a, b) => ((a.stamp ?? "") < (b.stamp ?? "") ? -1 : 1));
}

function Part({ of }) {
  const event = of.topic !== undefined;
  const [op, name, id, value] = event ? ["event", of.topic, of.key, of.payload] : [of.op, of.table, of.id, of.values];
  return html`<details class="mutation"><summary><span class=${"op op-" + op}>${op}</span> ${name} ${id && html`<${Short} id=${id} />`}</summary><${JSONView} value=${value} label=${event ? `Payload of ${name}` : `Values of ${name}`} /></details>`;
}

export function Outbox() {
  const after = route.value.query.get("after") ?? "";
  // Without a stamp, shows the newest entries, newest first; with a stamp, the entries after it.
  const { data, error, refresh } = useLive("outbox", after ? { after, limit: shown } : { newest: true, limit: shown }, { kinds: ["outbox"], every: 5000 });
  const consumers = useLive("outbox/consumers", {}, { kinds: ["outbox"], every: 5000 });
  const entries = after ? data?.data ?? [] : (data?.data ?? []).toReversed();
  const later = after && data?.next_cursor;
  useKeys({
    "[": ["First entries", () => alter({ after: zero })],
    "]": later && ["Later entries", () => alter({ after: later })],
    "}": after && ["Newest entries", () => alter({ after: "" })],
  });
  return html`<${Heading} title="Outbox" about="One entry for each committed unit of work, in commit order, without gaps." />
    <${Failure} error=${error} retry=${refresh} />
    <${Panel} title="Consumers" cls="full"><${Table} title="Consumers" of=${consumers} rows=${consumers.data?.data} empty="No consumers." keyOf=${(c) => c.name} cls="labelled" columns=${[
      ["Consumer", (c) => html`<b>${c.name}</b>`], ["Lag", (c) => (c.lag === undefined ? "" : `${Number(c.lag).toLocaleString()} entries`)], ["Status", (c) => html`<${State} of=${c} />`], ["Dead letters", (c) => (c.dead ? html`<a href=${link(["dead"], { kind: "consumers" })}>${c.dead.toLocaleString()}</a>` : "0")], ["Position", (c) => html`<code>${c.position}</code>`], ["Moved", (c) => html`<${When} at=${c.updated_at} />`],
    ]} /><//>
    ${!data && !error && html`<${Loading} />`}
    ${data && html`<${Panel} title="Entries" cls="full"><${Table} title="Entries" rows=${entries} empty=${after ? "No entries after this stamp." : "No entries. The outbox records units if the engine is opened with Options{Outbox: true}."} keyOf=${(e) => e.stamp} columns=${[
      ["Stamp", (e) => html`<code>${e.stamp}</code> <${Copy} text=${e.stamp} />`],
      ["Committed", (e) => html`<${When} at=${e.created_at} />`],
      ["Changes and events", (e) => parts(e).map((p) => html`<${Part} of=${p} />`)],
    ]} /><//>`}
    <nav class="pager" aria-label="Rows">
      ${after !== zero && html`<button onClick=${() => alter({ after: zero })}>From the start</button>`}
      ${later && html`<button data-older onClick=${() => alter({ after: later })}>Later</button>`}
      ${after && html`<button onClick=${() => alter({ after: "" })}>Newest</button>`}
      <form class="inline" onSubmit=${(e) => { e.preventDefault(); alter({ after: new FormData(e.target).get("after").trim() }); }}><label>After stamp <input type="text" name="after" pattern="[0-9a-f]{24}" value=${after} /></label> <button>Go</button></form>
    </nav>`;
}
