// The mailbox: messages sent during development, which are not delivered anywhere else.
import { html } from "../lib.mjs";
import { useLive } from "../live.mjs";
import { alter, altered, route } from "../router.mjs";
import { useKeys } from "../keyboard.mjs";
import { At, When } from "../time.mjs";
import { Facts, Failure, Heading, Loading, Panel } from "../parts.mjs";

const kinds = { email: "Email", sms: "Text messages" };

export function Mailbox() {
  const kind = Object.hasOwn(kinds, route.value.query.get("kind")) ? route.value.query.get("kind") : "email";
  const { data, error, refresh } = useLive("dev/messages", { kind }, { kinds: ["tasks"], every: 5000 });
  const all = (data?.data ?? []).slice(0, 100);
  const chosen = route.value.query.get("message") ?? "";
  const at = Math.max(0, all.findIndex((m) => m.sent_at === chosen));
  const message = all[at];
  const to = (i) => all[i] && alter({ message: all[i].sent_at }, { replace: true });
  useKeys({ j: ["Next message", () => to(at + 1)], k: ["Previous message", () => to(at - 1)] });
  return html`<${Heading} title="Mailbox" about="Messages that perdure dev captured instead of sending." />
    <nav class="tabs" aria-label="Kind">${Object.entries(kinds).map(([k, text]) => html`<a key=${k} href=${altered({ kind: k, message: "" })} aria-current=${k === kind ? "page" : undefined}>${text}</a>`)}</nav>
    <${Failure} error=${error} retry=${refresh} />
    ${!data && !error && html`<${Loading} />`}
    ${data && !all.length && html`<p class="empty">No messages.</p>`}
    ${message && html`<div class="mail">
      <nav aria-label="Messages"><ul>${all.map((m, i) => html`<li key=${m.sent_at}><a href=${altered({ message: m.sent_at })} aria-current=${i === at ? "true" : undefined}>
        <b>${m.message.to}</b> <span class="muted"><${When} at=${m.sent_at} /></span><br />${m.message.subject ?? m.message.body ?? m.message.text}</a></li>`)}</ul></nav>
      <${Panel} title=${message.message.subject ?? "Text message"}>
        <${Facts} of=${{ From: message.message.from, To: message.message.to, Sent: html`<${At} at=${message.sent_at} />`, Attempt: message.message.attempt }} />
        <pre class="letter" tabindex="0">${message.message.text ?? message.message.body ?? message.message.html}</pre>
      <//>
    </div>`}`;
}
