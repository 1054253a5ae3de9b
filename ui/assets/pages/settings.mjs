// Settings: the theme of this browser, and the API tokens.
import { html } from "../lib.mjs";
import { del, post, segment } from "../api.mjs";
import { useLive } from "../live.mjs";
import { theme, themes } from "../theme.mjs";
import { me, may } from "../me.mjs";
import { Actions } from "../action.mjs";
import { ask, show } from "../dialog.mjs";
import { Copy } from "../copy.mjs";
import { fail } from "../toast.mjs";
import { Field } from "../form.mjs";
import { When } from "../time.mjs";
import { link } from "../router.mjs";
import { Facts, Failure, Heading, Panel, Table } from "../parts.mjs";

export function Settings() {
  return html`<${Heading} title="Settings" />
    <div class="columns">
      <${Panel} title="Appearance"><div class="switch" role="group" aria-label="Theme">${themes.map((t) => html`<button data-theme-choice=${t} aria-pressed=${theme.value === t} onClick=${() => { theme.value = t; }}>${t}</button>`)}</div><//>
      <${Panel} title="You">${me.value && html`<${Facts} of=${{ Name: me.value.name, Role: me.value.role, "Signed in by": me.value.auth, Server: me.value.version, Database: me.value.database }} />`}
        ${me.value?.auth === "session" && html`<button data-action="signout" onClick=${() => del("session").then(() => location.reload(), fail)}>Sign out</button>`}<//>
    </div>
    ${may("admin") && html`<${Tokens} /><${ActorTokens} />`}`;
}

const actions = [{ name: "revoke", label: "Revoke", danger: true, role: "admin", run: (t) => del(`tokens/${segment(t.id)}`), question: (t) => `Requests with ${t.name} will be refused.` }];

function Tokens() {
  const tokens = useLive("tokens");
  const { data, error, refresh } = tokens;
  return html`<${Panel} title="API tokens" cls="full" actions=${html`<button class="small" data-action="token" onClick=${() => create().then(refresh)}>New token…</button>`}>
    <${Failure} error=${error} />
    <${Table} title="API tokens" of=${tokens} rows=${data?.data} empty="No API tokens. Local users have admin access until you create one." keyOf=${(t) => t.id} columns=${[
      ["Name", (t) => html`<b>${t.name}</b>`], ["Role", (t) => t.role], ["Created", (t) => html`<${When} at=${t.created_at} />`], ["Last used", (t) => html`<${When} at=${t.last_used_at} none="never" />`],
      ["", (t) => html`<${Actions} actions=${actions} row=${t} one="token" small=${true} after=${refresh} />`],
    ]} /><//>`;
}

const actorActions = [{ name: "revoke-actor-token", label: "Revoke", danger: true, role: "admin", run: (t) => del(`tokens/${segment(t.id)}`), question: (t) => `${t.caller.type} ${t.caller.id} will be refused by ${t.actor.type}/${t.actor.id}.`, when: (t) => !ended(t) }];

const ended = (t) => t.revoked_at ? "revoked" : t.expires_at && new Date(t.expires_at) <= new Date() ? "expired" : "";

/** The maximum number of actor tokens that are shown. */
const most = 100;

function ActorTokens() {
  const tokens = useLive("tokens/actors", { limit: most });
  const { data, error, refresh } = tokens;
  return html`<${Panel} title="Actor tokens" cls="full">
    <${Failure} error=${error} />
    <${Table} title="Actor tokens" of=${tokens} rows=${data?.data} empty="No actor tokens." keyOf=${(t) => t.id} columns=${[
      ["Actor", (t) => html`<a href=${link(["actors", t.actor.type, t.actor.id])}><b>${t.actor.type} ${t.actor.id}</b></a>`], ["Caller", (t) => `${t.caller.type} ${t.caller.id}`],
      ["Created", (t) => html`<${When} at=${t.created_at} />`], ["Last used", (t) => html`<${When} at=${t.last_used_at} none="never" />`], ["Expires", (t) => ended(t) || html`<${When} at=${t.expires_at} none="never" />`],
      ["", (t) => html`<${Actions} actions=${actorActions} row=${t} one="token" small=${true} after=${refresh} />`],
    ]} />
    ${data?.next_cursor && html`<p>The newest ${most}. List all with <code>perdure token list --actors</code></p>`}<//>`;
}

async function create() {
  let made;
  await ask({
    title: "New API token", confirm: "Create",
    fields: ({ values, set }) => html`<${Field} label="Name"><input type="text" required autofocus value=${values.name ?? ""} onInput=${(e) => set({ name: e.target.value })} /><//>
      <${Field} label="Role" hint="Viewers read; operators also start, retry and cancel; admins may do everything"><select value=${values.role ?? "viewer"} onChange=${(e) => set({ role: e.target.value })}>
        <option>viewer</option><option>operator</option><option>admin</option></select><//>`,
    act: async (v) => { made = await post("tokens", { name: v.name, role: v.role ?? "viewer" }); },
  });
  if (made?.token) await show(({ close }) => html`<p>Copy the token now. It is not shown again.</p><p class="id"><code>${made.token}</code><${Copy} text=${made.token} /></p><div class="buttons"><button class="primary" onClick=${() => close()}>Done</button></div>`, { title: "New API token" });
}
