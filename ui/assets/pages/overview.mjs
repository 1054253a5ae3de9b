// The overview: the health of the system, and where problems are.
import { html, own } from "../lib.mjs";
import { docs } from "../api.mjs";
import { useLive } from "../live.mjs";
import { alter, link, route } from "../router.mjs";
import { When, span, tick } from "../time.mjs";
import { Chart, Spark } from "../chart.mjs";
import { Heading, Failure, Panel, Table, Loading } from "../parts.mjs";
import { Icon } from "../status.mjs";
import { Verdict } from "../verdict.mjs";

const ranges = ["15m", "1h", "24h"];
const titles = { instances: "Instances", actors: "Actors", hooks: "Hooks", tasks: "Tasks", alarms: "Alarms", schedules: "Schedules", outbox: "Outbox" };

/** late is the age at which due work is shown as late. */
const late = 60_000;

export function Overview() {
  const range = ranges.includes(route.value.query.get("range")) ? route.value.query.get("range") : "15m";
  const { data, error, refresh } = useLive("overview", { range }, { kinds: ["instances", "actors", "hooks", "tasks", "alarms", "outbox"], every: 5000 });
  const dead = useLive("dead", { group_by: "error", limit: 5 }, { kinds: ["dead", "instances", "hooks", "tasks", "alarms"], every: 10_000 });
  return html`<${Heading} title="Overview">
      <div class="switch" role="group" aria-label="Range">${ranges.map((r) => html`<button class="small" aria-pressed=${r === range} onClick=${() => alter({ range: r })}>${r}</button>`)}</div>
    <//>
    <${Failure} error=${error} retry=${refresh} />
    ${!data && !error && html`<${Loading} />`}
    ${data && isNew(data) && html`<p class="empty">No work yet. ${docs && html`The <a href=${docs + "quickstart"}>quickstart</a> shows the first steps. `}<a href=${link(["definitions"])}>Start an instance</a> of a state machine that a process serves.</p>`}
    <${Verdict} />
    ${data && html`<div class="cards">${(data.kinds ?? []).map((k) => html`<${Kind} key=${k.kind} of=${k} spark=${data.series?.throughput?.[k.kind]} />`)}</div>
      <${Horizon} of=${data.horizon} />
      <${Paused} rows=${data.paused ?? []} />
      <${Unserved} rows=${data.unserved ?? []} cap=${data.cap} />
      <${Charts} series=${data.series} />
      <div class="columns">
        <${Queues} rows=${data.queues} />
        <${Panel} title="Dead letters" actions=${html`<a href=${link(["dead"])}>View all</a>`}>
          <${Table} title="Dead letters by error" of=${dead} empty="No dead letters." rows=${dead.data?.data} columns=${[
            ["Error", (g) => html`<a href=${link(["dead"], { kind: g.kind })} class="clip">${g.error}</a>`],
            ["Kind", (g) => g.kind],
            ["Count", (g) => g.count?.toLocaleString() + (g.capped ? "+" : "")],
            ["Last", (g) => html`<${When} at=${g.last_at} />`],
          ]} />
        <//>
      </div>`}`;
}

// isNew reports whether there is no work yet.
const isNew = ({ kinds = [] }) => kinds.every((k) => !(k.total || k.due || k.running || k.waiting || k.scheduled || k.failed || k.per_minute || Object.values(k.statuses ?? {}).some(Boolean)));

function Kind({ of, spark }) {
  const oldest = Date.parse(of.oldest_due_at ?? "");
  const age = Number.isNaN(oldest) ? 0 : Math.max(0, tick.value - oldest);
  const numbers = [["due", of.due, "due"], ["running", of.running, "run"], ["waiting", (of.waiting ?? 0) + (of.scheduled ?? 0), "wait"], ["failed", of.failed, "bad"]]
    .filter(([, n]) => n !== undefined && (n || of.total === undefined));
  return html`<section class="card">
    <h2><a href=${link([of.kind])}>${own(titles, of.kind) ?? of.kind}</a></h2>
    <div class="rate"><p class="big">${of.total === undefined ? html`${rate(of.per_minute)}<small> / min</small>` : html`${of.total.toLocaleString()}<small> in total</small>`}</p>${spark && html`<${Spark} values=${spark} label=${`${own(titles, of.kind) ?? of.kind}: throughput`} />`}</div>
    <dl>${numbers.map(([name, n, shape]) => html`<div key=${name} class=${n ? "is-" + shape : "muted"}><dt><${Icon} shape=${shape} />${name}</dt><dd>${n.toLocaleString()}</dd></div>`)}</dl>
    <p class=${age > late ? "oldest is-bad" : "oldest muted"}>${age > 0 ? html`${age > late && html`<${Icon} shape="jail" />`}oldest due ${span(age)} ago` : "no overdue work"}</p>
  </section>`;
}

const rate = (n = 0) => (n < 10 ? Math.round(n * 10) / 10 : Math.round(n)).toLocaleString();

function Charts({ series }) {
  if (!series) return null;
  const from = Date.parse(series.from);
  const step = millis(series.step);
  const chart = (title, lines, unit, bad) => lines.length > 0 && html`<${Chart} title=${title} lines=${lines} from=${from} step=${step} unit=${unit} bad=${bad} />`;
  const each = (byName) => Object.entries(byName ?? {}).map(([name, values]) => ({ name, values }));
  const charts = [
    chart(`Throughput per ${span(step)}`, each(series.throughput), ""),
    chart("Latency", each(series.latency_ms), " ms"),
    chart("Backlog", series.backlog ? [{ name: "due", values: series.backlog }] : [], ""),
    chart("Failures", series.failures ? [{ name: "failed", values: series.failures }] : [], "", true),
  ].filter(Boolean);
  return html`<div class=${"charts charts-" + charts.length}>${charts}</div>`;
}

/** millis parses a duration in Go's format. */
export function millis(text) {
  const units = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };
  return [...String(text ?? "").matchAll(/([\d.]+)(ms|h|m|s)/g)].reduce((sum, [, n, unit]) => sum + Number(n) * units[unit], 0);
}

// Queues shows the due work of each queue and the number of processes that serve it. Due
// work without a process is the symptom of an outage.
function Queues({ rows }) {
  const nodes = useLive("nodes", {}, { kinds: ["nodes"], every: 5000 });
  const up = (nodes.data?.data ?? []).filter((n) => n.status === "up");
  const takers = (q) => up.flatMap((n) => n.queues ?? []).filter((t) => !t.idle && t.queue === q.name && t.kind === own(singular, q.kind));
  return html`<${Panel} title="Queues"><${Table} title="Queues" rows=${rows} empty="No queue has work." keyOf=${(q) => q.kind + q.name} cls="labelled" columns=${[
    ["Queue", (q) => html`<a href=${link([q.kind], { queue: q.name })}>${q.name}</a> <span class="muted">${own(titles, q.kind) ?? q.kind}</span>`],
    ["Due", (q) => (q.due ?? 0).toLocaleString()],
    ["Oldest due", (q) => html`<${When} at=${q.oldest_due_at} />`],
    ["Running", (q) => takers(q).reduce((n, t) => n + t.running, 0).toLocaleString()],
    ["Processes", (q) => (!nodes.data ? "–" : !takers(q).length ? html`<span class="is-bad"><${Icon} shape="jail" /> none</span>` : takers(q).length)],
  ]} /><//>`;
}

// Horizon shows what keeps the database from removing deleted rows.
function Horizon({ of }) {
  if (!of) return null;
  const what = own({ session: "Session", prepared: "Prepared transaction", slot: "Replication slot", standby: "Standby" }, of.holder) ?? of.holder;
  return html`<${Panel} title="Deleted rows are kept" cls="full horizon">
    <p><${Icon} shape="odd" /> ${what} <b>${of.name}</b>${of.detail && ` (${of.detail})`} has been open${of.since ? html` since <${When} at=${of.since} />` : " for long"}: ${(of.dead_rows ?? 0).toLocaleString()} deleted rows cannot be removed. Work becomes slower the longer it stays open.</p>
  <//>`;
}

// Paused shows what no process claims until it is resumed.
function Paused({ rows }) {
  if (!rows.length) return null;
  return html`<${Panel} title="Paused" cls="full paused"><${Table} title="Work that no process claims until it is resumed" rows=${rows} keyOf=${(p) => p.target} cls="labelled" columns=${[
    ["Target", (p) => html`<${Icon} shape="odd" /> <b>${p.target}</b>`],
    ["Since", (p) => html`<${When} at=${p.at} />`],
    ["Until", (p) => (p.until ? html`<${When} at=${p.until} />` : "resumed")],
    ["By", (p) => p.actor],
    ["Reason", (p) => p.reason],
  ]} /><//>`;
}

// Unserved shows due work that no live process serves: it waits until a process does.
function Unserved({ rows, cap }) {
  if (!rows.length) return null;
  return html`<${Panel} title="Unserved work" cls="full unserved"><${Table} title="Work that no live process serves" rows=${rows} keyOf=${(u) => JSON.stringify([u.kind, u.queue, u.name, u.version, u.step, u.schedule])} cls="labelled" columns=${[
    ["Work", (u) => html`<${Icon} shape="odd" /> <a href=${whereUnserved(u)}>${own(titles, u.kind) ?? u.kind}</a>`],
    ["Needs", (u) => needs(u)],
    ["Due", (u) => (u.schedule ? "" : u.count.toLocaleString() + (u.count > cap ? "+" : ""))],
    ["Since", (u) => html`${u.schedule && "next "}<${When} at=${u.oldest_due_at} />`],
  ]} /><//>`;
}

// needs describes what a process must serve to run the work.
function needs(u) {
  const definition = `${u.name} version ${u.version}`;
  return own({
    queue: html`a process that serves queue <b>${u.queue}</b>`,
    definition: html`a process that serves <b>${definition}</b>${u.schedule ? ` for schedule ${u.schedule}` : ` in queue ${u.queue}`}`,
    step: html`a process that serves step <b>${u.step}</b> of ${definition} in queue ${u.queue}`,
    handler: html`a process that handles <b>${u.name}</b>${u.queue && ` in namespace ${u.queue}`}`,
  }, u.why) ?? u.why;
}

const whereUnserved = (u) => (u.schedule ? link(["schedules", u.schedule]) : link([u.kind], own({
  instances: u.why === "queue" ? { queue: u.queue } : { definition: u.name, status: "no_worker" },
  hooks: { namespace: u.queue, name: u.name }, tasks: { type: u.name }, alarms: { type: u.name }, actors: { type: u.name },
}, u.kind) ?? {}));

const singular = { instances: "instance", hooks: "hook", tasks: "task", alarms: "alarm" };
