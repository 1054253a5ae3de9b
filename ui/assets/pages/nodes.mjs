// Nodes: the running processes.
import { html } from "../lib.mjs";
import { Short } from "../copy.mjs";
import { post, segment } from "../api.mjs";
import { Actions } from "../action.mjs";
import { List } from "../list.mjs";
import { Status } from "../status.mjs";
import { When } from "../time.mjs";

const actions = [
  { name: "drain", label: "Drain", past: "drained", key: "d", role: "admin", danger: true, when: (n) => n.status === "up", run: (n) => post(`nodes/${segment(n.id)}/drain`),
    question: (n) => `${n.host ?? n.id} will finish its running work and claim no new work.` },
];

// busy are the queues whose work a node is running.
const busy = (n) => (n.queues ?? []).filter((q) => q.running > 0);

// held are the names whose work waits for slots of a node.
const held = (n) => (n.queues ?? []).flatMap((q) => q.held ?? []);

const spec = {
  kind: "nodes", one: "node", title: "Nodes", path: "nodes", whole: true, every: 5000,
  about: "Processes that run on this database.",
  id: (n) => n.id, actions,
  empty: "No process runs on this database.",
  columns: [
    { title: "Node", cell: (n) => html`<b>${n.host}</b> <span class="muted">pid ${n.pid}</span><br /><${Short} id=${n.id} />` },
    { title: "Status", cell: (n) => html`<${Status} of=${n.status} />` },
    { title: "Running", cell: (n) => html`<b>${(n.running ?? 0).toLocaleString()}</b>${busy(n).map((q) => html`<br /><span class="muted">${q.running.toLocaleString()} ${[q.kind, q.queue].filter(Boolean).join(" ")}</span>`)}${held(n).map((name) => html`<br /><span class="muted">${name} waits for slots</span>`)}` },
    { title: "Last seen", cell: (n) => html`<${When} at=${n.seen_at} />` },
    { title: "Started", cls: "minor", cell: (n) => html`<${When} at=${n.started_at} />` },
    { title: "Roles", cls: "minor", cell: (n) => (n.roles ?? []).join(", ") },
    { title: "Kinds", cls: "minor", cell: (n) => (n.work ?? []).join(", ") },
    { title: "Version", cls: "minor", cell: (n) => n.version },
    { title: "Actions", cell: (n, refresh) => html`<${Actions} actions=${actions} row=${n} one="node" small=${true} after=${refresh} />` },
  ],
};

export const Nodes = () => html`<${List} spec=${spec} />`;
