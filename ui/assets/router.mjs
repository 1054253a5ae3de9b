// Addresses: the address of a page restores everything that it shows.
import { signal } from "./lib.mjs";
import { base, docs, root } from "./api.mjs";

/** route is the current address: the names of the path, and the query. */
export const route = signal(here());

function here() {
  const path = location.pathname.slice(base.pathname.length);
  return { names: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(location.search) };
}

function decode(name) {
  try { return decodeURIComponent(name); } catch { return name; }
}

/** link returns the address of a page: names are escaped, empty parameters are omitted. */
export function link(names, params = {}) {
  const u = new URL(names.map((n) => encodeURIComponent(n)).join("/"), base);
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== "") u.searchParams.set(name, value);
  }
  return u.href;
}

/** go navigates to another page. */
export function go(href, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", href);
  moved();
}

/** altered is the address of this page with other parameters. */
export function altered(params) {
  const { names, query } = route.value;
  return link(names, { ...Object.fromEntries(query), ...params });
}

/** alter changes parameters of this page. */
export const alter = (params, options) => go(altered(params), options);

function moved() {
  const before = route.peek().names.join("/");
  route.value = here();
  if (route.peek().names.join("/") !== before) window.scrollTo(0, 0);
}

/** start handles links and the browser's back and forward buttons. */
export function start() {
  addEventListener("popstate", moved);
  document.addEventListener("click", (e) => {
    const a = e.target.closest?.("a[href]");
    if (!a || e.defaultPrevented || e.button || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    if (a.target || a.hasAttribute("download") || !ours(a.href) || a.getAttribute("href").startsWith("#")) return;
    e.preventDefault();
    go(a.href);
  });
}

const ours = (href) => href.startsWith(base.href) && !(docs && href.startsWith(docs)) && !href.startsWith(root.href);
