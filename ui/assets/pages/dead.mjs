// Dead letters: failed and quarantined work, grouped by error.
import { html, own } from "../lib.mjs";
import { Short } from "../copy.mjs";
import { post } from "../api.mjs";
import { useLive } from "../live.mjs";
import { altered, link, route } from "../router.mjs";
import { useKeys } from "../keyboard.mjs";
import { confirmed } from "../action.mjs";
import { say, fail } from "../toast.mjs";
import { may } from "../me.mjs";
import { address } from "../palette.mjs";
import { When } from "../time.mjs";
import { ErrorText, Failure, Heading, Loading } from "../parts.mjs";

const kinds = { "": "all", instances: "Instances", hooks: "Hooks", tasks: "Tasks", alarms: "Alarms", actors: "Actors", consumers: "Consumers" };
const single = { instances: "instance", hooks: "hook", tasks: "task", alarms: "alarm", actors: "actor", consumers: "dead entry" };
const named = (kind, n) => (n === 1 ? own(single, kind) ?? kind : kind);

export function Dead() {
  const kind = route.value.query.get("kind") ?? "";
  const { data, error, refresh } = useLive("dead", { group_by: "error", kind, limit: 100 }, { kinds: ["dead", "instances", "hooks", "tasks", "alarms"], every: 10_000 });
  const groups = data?.data ?? [];
  const move = (by) => {
    const all = [...document.querySelectorAll("[data-group]")];
    const at = all.indexOf(document.activeElement?.closest("[data-group]"));
    all[Math.max(0, Math.min(all.length - 1, at + by))]?.focus();
  };
  useKeys({
    j: ["Next group", () => move(1)],
    k: ["Previous group", () => move(-1)],
    r: may("operator") && ["Retry the group", () => document.activeElement?.closest("[data-group]")?.querySelector("[data-action=retry]")?.click()],
  });
  return html`<${Heading} title="Dead letters" about="Failed and quarantined work. Fix the cause, then retry." />
    <nav class="tabs" aria-label="Kind">${Object.entries(kinds).map(([k, text]) => html`<a key=${k} href=${altered({ kind: k })} aria-current=${k === kind ? "page" : undefined}>${text}</a>`)}</nav>
    <${Failure} error=${error} retry=${refresh} />
    ${!data && !error && html`<${Loading} />`}
    ${data && !groups.length && html`<p class="empty">No dead letters.</p>`}
    <ul class="groups">${groups.map((g) => html`<${Group} key=${g.kind + g.name + g.error} of=${g} refresh=${refresh} />`)}</ul>`;
}

function Group({ of, refresh }) {
  const count = `${(of.count ?? 0).toLocaleString()}${of.capped ? "+" : ""}`;
  return html`<li class="group" data-group tabindex="0">
    <div class="group-count"><b>${count}</b><span class="muted">${named(of.kind, of.count)}</span></div>
    <div class="group-text">
      <${ErrorText} text=${of.example && of.example !== of.error ? `${of.error}\n${of.example}` : of.error} />
      <p class="muted">${of.name && html`${of.name} · `}first <${When} at=${of.first_at} />, last <${When} at=${of.last_at} /></p>
      ${of.ids?.length > 0 && html`<p class="ids">${of.ids.map((id) => html`<a key=${id} href=${address({ kind: of.kind, id: String(id) })}><${Short} id=${id} /></a> `)}</p>`}
    </div>
    <div class="actions">
      ${may("operator") && html`<button data-action="retry" onClick=${() => retry(of).then(refresh)}>${of.count === 1 ? "Retry" : `Retry all ${count}`}</button>`}
      <a class="button" href=${of.kind === "consumers" ? link(["outbox"]) : link([of.kind], listed(of))}>List</a>
    </div>
  </li>`;
}

// listed returns the filter of a kind's list for a group.
function listed({ kind, name }) {
  const status = kind === "actors" ? "quarantined" : "failed";
  const field = { instances: "definition", hooks: "name", tasks: "type", alarms: "type", actors: "type" }[kind];
  return field ? { status, [field]: kind === "hooks" ? String(name).split("/").at(-1) : name } : {};
}

async function retry(group) {
  const body = { kind: group.kind, error: group.error, name: group.name };
  let found;
  try {
    found = await post("dead/retry", { ...body, dry_run: true });
  } catch (error) {
    return fail(error);
  }
  return confirmed({
    title: `Retry ${found.matched.toLocaleString()} ${group.kind}?`, text: `${found.capped ? "One request retries at most this number; repeat it for the rest. " : ""}${group.error}`, confirm: `Retry ${found.matched.toLocaleString()}`,
    act: async () => {
      const result = await post("dead/retry", body);
      say(`Retried ${result.done.toLocaleString()} ${named(group.kind, result.done)}`);
    },
  });
}
