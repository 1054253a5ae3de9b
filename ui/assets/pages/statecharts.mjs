// Statecharts: the definitions of actors.
import { html } from "../lib.mjs";
import { because, segment, put, post } from "../api.mjs";
import { useLive } from "../live.mjs";
import { altered, go, link, route } from "../router.mjs";
import { ask } from "../dialog.mjs";
import { may } from "../me.mjs";
import { say } from "../toast.mjs";
import { List } from "../list.mjs";
import { StatechartDrawing } from "../statechart.mjs";
import { JSONView } from "../json.mjs";
import { Field, JSONField } from "../form.mjs";
import { Facts, Failure, Heading, Loading, Panel } from "../parts.mjs";
import { createActor } from "./actors.mjs";

const spec = {
  kind: "statecharts", one: "statechart", title: "Statecharts", path: "statecharts", whole: true,
  about: "XState documents, registered in Go or stored in the database.",
  id: (m) => m.name, href: (m) => link(["statecharts", m.name]),
  create: { label: "New statechart…", role: "admin", open: () => define() },
  empty: "No statecharts. Store one as JSON with the button above, or register one in Go.",
  columns: [
    { title: "Statechart", cell: (m) => html`<b>${m.name}</b>` },
    { title: "Version", cell: (m) => m.version },
    { title: "Actors", cell: (m) => html`<a href=${link(["actors"], { type: m.name })}>show</a>` },
    { title: "Defined in", cell: (m) => m.source },
  ],
};

export const Statecharts = () => html`<${List} spec=${spec} />`;

const start = { id: "light", initial: "green", states: { green: { after: { 30000: "yellow" } }, yellow: { after: { 5000: "red" } }, red: { on: { GO: "green" } } } };

// define asks for a statechart; the server validates it before it stores it.
function define(machine) {
  return ask({
    title: machine ? `New version of ${machine.name}` : "New statechart", confirm: "Check and save", wide: true,
    fields: ({ values, set }) => html`
      ${!machine && html`<${Field} label="Name"><input type="text" required autofocus value=${values.name ?? ""} onInput=${(e) => set({ name: e.target.value })} /><//>`}
      <${JSONField} label="Statechart" rows=${18} value=${values.definition ?? machine?.definition ?? start} onChange=${(v, ok) => set(ok ? { definition: v, broken: false } : { broken: true })} />`,
    act: async (v, why) => {
      if (v.broken) throw new Error("The statechart is not JSON.");
      const name = machine?.name ?? v.name;
      const definition = v.definition ?? machine?.definition ?? start;
      const check = await because("", () => post("statecharts/check", { definition }));
      if (check?.valid === false) throw Object.assign(new Error("The statechart cannot be run."), { errors: check.problems });
      await because(why, () => put(`statecharts/${segment(name)}`, { definition }));
      say(`Saved ${name}`);
      go(link(["statecharts", name]));
    },
  });
}

export function Statechart({ names: [name] }) {
  const version = Number(route.value.query.get("version")) || undefined; // undefined: the newest
  const { data, error, refresh } = useLive(`statecharts/${segment(name)}`, { version }, { kinds: ["statecharts"] });
  const newest = useLive(version ? `statecharts/${segment(name)}` : null).data ?? data;
  if (!data) return error ? html`<${Heading} title=${name} /><${Failure} error=${error} retry=${refresh} />` : html`<${Loading} />`;
  return html`<${Heading} title=${data.name} kind="Statechart">
      ${may("operator") && html`<button class="primary" data-action="create" onClick=${() => createActor(data.name)}>New actor…</button>`}
      ${may("admin") && data.source !== "go" && html`<button data-action="define" onClick=${() => define(data)}>New version…</button>`}
      <a class="button" href=${link(["actors"], { type: data.name })}>Actors</a>
    <//>
    ${newest.version > data.version && html`<p class="waiting">This is version ${data.version}. The newest is <a href=${altered({ version: "" })}>version ${newest.version}</a>.</p>`}
    <${Panel} title="Drawing" cls="full"><${StatechartDrawing} key=${data.version} name=${data.name} version=${data.version} /><//>
    <div class="columns">
      <${Panel} title="Details"><${Facts} of=${{ Version: html`${data.version}${data.version > 1 && data.source === "http" && html` <a href=${altered({ version: data.version - 1 })}>previous version</a>`}`, "Defined in": data.source, Events: (data.events ?? []).map((e) => e.type).join(", ") }} /><//>
      <${Panel} title="Definition"><${JSONView} value=${data.definition} open=${2} label="Definition" /><//>
    </div>`;
}
