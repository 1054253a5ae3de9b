// The frame around every page: navigation, the state of live updates, messages.
import { html, useEffect, useErrorBoundary, useRef, useState, cls } from "./lib.mjs";
import { docs, title, unauthorized } from "./api.mjs";
import { route, link, go } from "./router.mjs";
import { groups, pages, find } from "./pages.mjs";
import { status, paused } from "./stream.mjs";
import { useKeys, sheet } from "./keyboard.mjs";
import { toggle } from "./theme.mjs";
import { palette } from "./palette.mjs";
import { DevClock } from "./devclock.mjs";
import { Dialogs } from "./dialog.mjs";
import { Toasts } from "./toast.mjs";
import { Heading, Failure } from "./parts.mjs";
import { me, may } from "./me.mjs";
import { SignIn } from "./signin.mjs";
import { Icon } from "./status.mjs";
import { Badge, useVerdict } from "./verdict.mjs";

/**
 * Shell is the whole window. Dialogs stay open when the server requires a token: a dialog
 * may show the token that was just created, which is shown only once.
 */
export const Shell = () => html`${unauthorized.value ? html`<${SignIn} />` : html`<${Frame} />`}<${Toasts} /><${Dialogs} />`;

// Frame is the window of a signed-in user.
function Frame() {
  const [menu, setMenu] = useState(false);
  const main = useRef(null);
  useShellKeys();
  useVerdict();
  const path = route.value.names.join("/");
  useEffect(() => setMenu(false), [path]);
  return html`
    <a class="skip" href="#main" onClick=${(e) => { e.preventDefault(); main.current.querySelector("h1")?.focus(); }}>Skip to content</a>
    <header class="top">
      <button class="plain menu" aria-expanded=${menu} aria-controls="nav" aria-label="Menu" onClick=${() => setMenu(!menu)}><${Icon} shape="M2 4h12M2 8h12M2 12h12" /></button>
      <a class="logo" aria-label=${`${title}: overview`} href=${link([])}><span class="mark" aria-hidden="true"></span><span class="name">${title}</span></a>
      <button class="search" onClick=${palette}><${Icon} shape="M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.5 10.5 14 14" /><span>Search or jump to…</span><kbd>Ctrl K</kbd></button>
      ${me.value?.dev && html`<${DevClock} />`}
      <${Live} />
      <button class="plain round" aria-label="Switch between dark and light" title="Key: t" onClick=${toggle}><${Icon} shape="M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11" /></button>
      <button class="plain round" aria-label="Keyboard" title="Key: ?" onClick=${sheet}>?</button>
    </header>
    <${Nav} open=${menu} />
    <main id="main" ref=${main}><${Page} key=${path} /></main>`;
}

// offered reports whether a page is available to the user.
const offered = (p) => (!p.dev || me.value?.dev) && (!p.role || may(p.role));

function Nav({ open }) {
  const at = route.value.names[0] ?? "";
  return html`<nav id="nav" class=${cls("nav", open && "open")} aria-label="Pages">
    ${groups.map(([group, all]) => html`<div key=${group} class="nav-group">
      ${group && html`<h2>${group}</h2>`}
      ${all.filter(offered).map((p) => html`<a key=${p.path} href=${link(p.path ? [p.path] : [])} aria-current=${p.path === at ? "page" : undefined}>
        ${p.title}<${Badge} page=${p.path} /><kbd aria-hidden="true">g ${p.key}</kbd></a>`)}
    </div>`)}
    ${docs && html`<div class="nav-group"><a href=${docs}>Documentation</a></div>`}
    <p class="muted who">${me.value ? html`${me.value.name ? me.value.name + " · " : ""}${me.value.role}${me.value.version ? html`<br />${me.value.version}` : ""}` : ""}</p>
  </nav>`;
}

const states = {
  live: ["ok", "Live"], connecting: ["wait", "Connecting"], offline: ["bad", "Offline"], paused: ["pause", "Paused"],
};

function Live() {
  const [shape, text] = states[status.value];
  return html`<button class=${"plain live is-" + shape} data-live=${status.value} aria-pressed=${paused.value} aria-label=${`Live updates: ${text}`} title="Pause or resume live updates. Key: ."
    onClick=${() => { paused.value = !paused.value; }}><${Icon} shape=${shape} /><span aria-live="polite">${text}</span></button>`;
}

function useShellKeys() {
  useKeys(Object.fromEntries(pages.filter(offered).map((p) => [`g ${p.key}`, [p.title, () => go(link(p.path ? [p.path] : []))]])), "Go to");
  useKeys({
    "?": ["Show the keys", sheet],
    "Ctrl K": ["Search and commands", palette],
    ".": ["Pause or resume live updates", () => { paused.value = !paused.value; }],
    t: ["Switch between dark and light", toggle],
    Escape: ["Leave the input field", () => document.activeElement?.blur()],
  }, "Everywhere");
}

function Page() {
  const [error, reset] = useErrorBoundary((e) => console.error(e));
  const found = find(route.value.names);
  useEffect(() => { document.querySelector("main h1")?.focus({ preventScroll: true }); }, []);
  if (error) return html`<${Heading} title="Something went wrong" /><${Failure} error=${error} retry=${reset} />`;
  if (!found) return html`<${Heading} title="Page not found" /><p><a href=${link([])}>Go to the overview</a></p>`;
  if (found.page.role && me.value && !may(found.page.role)) return html`<${Heading} title=${found.page.title} /><p class="empty">This page requires the role ${found.page.role}. You have the role ${me.value.role}.</p>`;
  return html`<${found.Component} names=${found.names} />`;
}
