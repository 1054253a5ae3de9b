// The mailbox: what was sent while developing, and went nowhere else.
import { html } from "../lib.mjs";
import { useLive } from "../live.mjs";
import { alter, altered, link, route } from "../router.mjs";
import { useKeys } from "../keyboard.mjs";
import { At, When } from "../time.mjs";
import { Facts, Failure, Heading, Loading, Panel } from "../parts.mjs";

export function Mailbox() {
  const { data, error, refresh } = useLive("mailbox", { limit: 100 }, { kinds: ["mailbox", "tasks"], every: 3000 });
  const all = data?.data ?? [];
  const chosen = route.value.query.get("message") ?? "";
  const at = Math.max(0, all.findIndex((m) => String(m.id) === chosen));
  const message = all[at];
  const to = (i) => all[i] && alter({ message: all[i].id }, { replace: true });
  useKeys({ j: ["Next message", () => to(at + 1)], k: ["Previous message", () => to(at - 1)] });
  if (error?.status === 404) return html`<${Heading} title="Mailbox" /><p class="empty">Only perdure dev has a mailbox: here, messages are really sent.</p>`;
  return html`<${Heading} title="Mailbox" about="E-mails and text messages that were captured instead of sent." />
    <${Failure} error=${error} retry=${refresh} />
    ${!data && !error && html`<${Loading} />`}
    ${data && !all.length && html`<p class="empty">Nothing was sent yet.</p>`}
    ${message && html`<div class="mail">
      <nav aria-label="Messages"><ul>${all.map((m, i) => html`<li key=${m.id}><a href=${altered({ message: m.id })} aria-current=${i === at ? "true" : undefined}>
        <b>${m.to}</b> <span class="muted"><${When} at=${m.created_at} /></span><br />${m.channel === "sms" ? html`<span class="muted">SMS</span> ${m.text}` : m.subject}</a></li>`)}</ul></nav>
      <${Panel} title=${titleOf(message)}>
        <${Facts} of=${{ From: message.from, To: message.to, Sent: html`<${At} at=${message.created_at} />`, Task: message.task_id && html`<a href=${link(["tasks", message.task_id])}>${message.task_id}</a>` }} />
        <pre class="letter" tabindex="0">${message.text ?? message.html}</pre>
      <//>
    </div>`}`;
}

const titleOf = (m) => (m.channel === "sms" ? "Text message" : m.subject || "(no subject)");
