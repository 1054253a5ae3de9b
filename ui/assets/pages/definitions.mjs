// The state machines that processes know.
import { html, useState } from "../lib.mjs";
import { del, segment } from "../api.mjs";
import { useLive } from "../live.mjs";
import { go, link } from "../router.mjs";
import { Actions } from "../action.mjs";
import { may } from "../me.mjs";
import { List } from "../list.mjs";
import { When } from "../time.mjs";
import { StepGraph, stepNames } from "../draw.mjs";
import { JSONView } from "../json.mjs";
import { Status } from "../status.mjs";
import { Facts, Failure, Heading, Loading, Panel } from "../parts.mjs";
import { startInstance } from "./instances.mjs";

const newest = (d) => (d.versions ?? []).reduce((a, b) => (a && a.version > b.version ? a : b), undefined);

const spec = {
  kind: "definitions", one: "state machine", title: "State machines", path: "definitions", whole: true,
  about: "Definitions of state machines, in Go or as HTTP endpoints.",
  id: (d) => d.name, href: (d) => link(["definitions", d.name]),
  empty: "No state machines. Register one with fsm.Define, or PUT one to /v1/definitions.",
  columns: [
    { title: "State machine", cell: (d) => html`<b>${d.name}</b>` },
    { title: "Versions", cell: (d) => (d.versions ?? []).map((v) => v.version).join(", ") },
    { title: "Steps", cls: "minor", cell: (d) => html`<span class="clip">${stepNames(newest(d)).join(" · ")}</span>` },
    { title: "Queue", cell: (d) => newest(d)?.queue ?? d.queue },
    { title: "Defined in", cls: "minor", cell: (d) => newest(d)?.source ?? d.source },
    { title: "Last seen", cls: "minor", cell: (d) => html`<${When} at=${newest(d)?.updated_at} />` },
  ],
};

export const Definitions = () => html`<${List} spec=${spec} />`;

const actions = [{ name: "delete", label: "Delete", danger: true, role: "admin", when: (d) => d.source === "http", run: (d) => { go(link(["definitions"])); return del(`definitions/${segment(d.name)}`); },
  question: () => "Its unfinished instances will wait until it is defined again." }];

export function Definition({ names: [name] }) {
  const { data, error, refresh } = useLive(`definitions/${segment(name)}`, {}, { kinds: ["definitions"] });
  const [chosen, setChosen] = useState(null);
  if (!data) return error ? html`<${Heading} title=${name} /><${Failure} error=${error} retry=${refresh} />` : html`<${Loading} />`;
  const version = data.versions?.find((v) => v.version === chosen) ?? newest(data);
  const taken = new Map((version?.edges ?? []).filter((e) => e.count).map((e) => [`${e.from}→${e.to}`, e.count]));
  return html`<${Heading} title=${data.name} kind="State machine">
      ${may("operator") && html`<button class="primary" data-action="create" onClick=${() => startInstance({ definition: data.name })}>Start…</button>`}
      <a class="button" href=${link(["instances"], { definition: data.name })}>Instances</a>
      <${Actions} actions=${actions} row=${data} one="definition" />
    <//>
    ${data.versions?.length > 1 && html`<div class="switch" role="group" aria-label="Version">${data.versions.map((v) => html`<button class="small" aria-pressed=${v === version} onClick=${() => setChosen(v.version)}>version ${v.version}</button>`)}</div>`}
    ${version && html`<${Panel} title="Steps" cls="full"><${StepGraph} version=${version} taken=${taken} /><//>`}
    <div class="columns">
      <${Panel} title="Details"><${Facts} of=${{ Queue: version?.queue ?? data.queue, "Defined in": version?.source ?? data.source, "First step": version?.first_step ?? stepNames(version)[0], Steps: version?.steps?.length, "Cancel step": version?.on_cancel,
        ...Object.fromEntries(Object.entries(data.counts ?? {}).map(([s, n]) => [s, html`<a href=${link(["instances"], { definition: data.name, status: s })}><${Status} of=${s} /> ${n.toLocaleString()}</a>`])) }} /><//>
      ${data.schema && html`<${Panel} title="State"><${JSONView} value=${data.schema} label="Schema of the state" /><//>`}
    </div>`;
}
