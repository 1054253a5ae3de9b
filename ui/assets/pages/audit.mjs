// Audit: the changes that operators and tokens have made.
import { html } from "../lib.mjs";
import { altered, link } from "../router.mjs";
import { may } from "../me.mjs";
import { List } from "../list.mjs";
import { Short } from "../copy.mjs";
import { At, When } from "../time.mjs";
import { JSONView } from "../json.mjs";
import { Facts } from "../parts.mjs";

/** AuditLink links to the entries of one target. A viewer may not read them. */
export const AuditLink = ({ kind, target }) => may("operator") && html`<a class="button" data-audit href=${link(["audit"], { kind, target })}>Audit</a>`;

// places return the page of a target, by its kind. Other kinds have no page.
const one = (kind) => (target) => [kind, target];
const places = new Map([
  ...["instances", "hooks", "tasks", "alarms", "schedules", "statecharts"].map((kind) => [kind, one(kind)]),
  ["actors", (target) => { const at = target.indexOf("/"); return at > 0 ? ["actors", target.slice(0, at), target.slice(at + 1)] : ["actors"]; }],
  ["definitions", (target) => ["definitions", target.replace(/@\d+$/, "")]], // name@version
  ["nodes", () => ["nodes"]],
  ["tokens", () => ["settings"]],
  ["outbox", () => ["outbox"]],
]);

// On shows the target of a change, with a link to its page.
function On({ of }) {
  const text = html`${of.kind} ${of.target && html`<${Short} id=${of.target} />`}`;
  const place = of.target && places.get(of.kind);
  return place ? html`<a href=${link(place(of.target))}>${text}</a>` : text;
}

function Who({ of }) {
  return html`<a title=${of.principal} href=${altered({ principal: of.principal, cursor: "" })}><b>${of.name || of.principal}</b></a> <span class="muted">${[of.via, of.address].filter(Boolean).join(" · ")}</span>`;
}

function Detail({ of }) {
  return html`<${Facts} of=${{
      At: html`<${At} at=${of.at} />`, Principal: of.principal, Role: of.role, Reason: of.reason, Request: of.request && html`<code>${of.request}</code>`,
      Target: of.target && html`${of.kind} <code>${of.target}</code> · <a href=${link(["audit"], { kind: of.kind, target: of.target })}>all entries</a>`,
      Entry: html`<code>${of.id}</code> <span class="muted">number ${of.seq} of chain ${of.chain}</span>`, Hash: of.hash && html`<code>${of.hash}</code>`,
    }} />
    <div class="side">${[["Input", of.input], ["Before", of.before], ["After", of.after]].map(([title, value]) => html`<section key=${title}><h2>${title}</h2><${JSONView} value=${value} label=${title} /></section>`)}</div>`;
}

const spec = {
  kind: "audit", one: "entry", title: "Audit log", path: "audit", every: 5000, facets: false,
  about: "Changes by users and tokens, newest first.",
  filters: {
    action: "operation, such as cancel-instance", kind: ["instances", "actors", "timers", "hooks", "tasks", "processes", "alarms", "schedules", "definitions", "statecharts", "nodes", "outbox", "tokens", "sessions"],
    target: "id; requires a kind", principal: "user or token, such as token:0198…", since: "start time, such as 2026-11-16T08:00:00Z", until: "end time",
  },
  id: (e) => e.id, detail: (e) => html`<${Detail} of=${e} />`,
  empty: "No entry matches.",
  columns: [
    { title: "When", cell: (e) => html`<${When} at=${e.at} />` },
    { title: "Principal", cell: (e) => html`<${Who} of=${e} />` },
    { title: "Action", cell: (e) => html`<b>${e.action}</b>` },
    { title: "Target", cell: (e) => html`<${On} of=${e} />` },
    { title: "Reason", cell: (e) => e.reason && html`<span class="clip" title=${e.reason}>${e.reason}</span>` },
  ],
};

export const Audit = () => html`<${List} spec=${spec} />`;
