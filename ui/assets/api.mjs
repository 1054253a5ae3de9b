// Requests to the HTTP API.
import { signal } from "./lib.mjs";
import { parse, stringify } from "./exact.mjs";

const meta = (name) => document.querySelector(`meta[name="perdure-${name}"]`)?.content ?? "";

/** The base is fixed at load: navigation to nested pages must not change it. */
export const base = new URL(document.baseURI);
document.querySelector("base").href = base.href;

export const root = new URL(meta("api").replace(/\/*$/, "/"), base);
export const docs = meta("docs") ? new URL(meta("docs"), base).href : "";
export const title = meta("title");

/** unauthorized is set when the server requires a token. */
export const unauthorized = signal(false);

/** skew is the number of milliseconds that the server's clock is ahead of the browser's. */
export const skew = signal(0);

/** Problem is an error response of the server, as in RFC 9457. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `the server responded with status ${status}`);
    this.status = status;
    this.code = body.code ?? "";
    this.errors = body.errors ?? [];
  }
}

/** url returns the address of a path below the API's root. The caller must escape names with segment. */
export function url(path, params = {}) {
  const u = new URL(path.replace(/^\/(v1\/)?/, ""), root);
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== "") u.searchParams.set(name, value);
  }
  return u.href;
}

/** segment escapes a name for use in a path. */
export const segment = (name) => encodeURIComponent(name);

/** get reads a resource. */
export function get(path, params, abort) {
  return request("GET", url(path, params), undefined, abort);
}

const tags = new WeakMap();

/** tagOf returns the ETag of a resource that was read, for a change that requires that version. */
export const tagOf = (thing) => tags.get(thing);

/** post, put, patch and del change a resource. Each post has its own idempotency key. A patch with a tag only changes the version with that tag. */
export const post = (path, body = {}) => request("POST", url(path), body);
export const put = (path, body = {}) => request("PUT", url(path), body);
export const patch = (path, body = {}, tag) => request("PATCH", url(path), body, undefined, tag);
export const del = (path, params) => request("DELETE", url(path, params));

let reason = ""; // of the change that is being requested

/**
 * because calls act with a reason for the audit log. Requests that act makes before its first
 * await carry the reason; concurrent requests of other changes do not.
 */
export function because(text, act) {
  const outer = reason;
  reason = text?.trim() ?? "";
  try { return act(); } finally { reason = outer; }
}

async function request(method, href, body, abort, tag) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method === "POST") headers["Idempotency-Key"] = key();
  if (tag) headers["If-Match"] = tag;
  if (reason && method !== "GET") headers["Perdure-Reason"] = encodeURIComponent(reason.toWellFormed?.() ?? reason);
  const init = { method, headers, signal: abort, credentials: "same-origin" };
  if (body !== undefined) init.body = stringify(body);
  let response;
  try {
    response = await fetch(href, init);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { detail: "The server cannot be reached.", code: "unreachable" });
  }
  return read(response);
}

async function read(response) {
  const text = await response.text();
  const date = Date.parse(response.headers.get("Date") ?? "");
  const ahead = date + 500 - Date.now(); // the header has whole seconds
  if (Math.abs(ahead) > 2000) skew.value = ahead;
  if (response.status === 401) unauthorized.value = true;
  let body = null;
  if (text && /json/.test(response.headers.get("Content-Type") ?? "")) body = parse(text);
  if (!response.ok) throw new Problem(response.status, body ?? {});
  const tag = response.headers.get("ETag")?.replace(/^W\//, ""); // compressing proxies make it weak
  if (tag && body) tags.set(body, tag);
  return body;
}

/** key returns a random key. Unlike crypto.randomUUID, it also works over plain HTTP. */
export function key() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
}

/** text reads a resource that is not JSON. */
export async function text(path, params, abort) {
  const response = await fetch(url(path, params), { signal: abort, credentials: "same-origin" });
  if (!response.ok) throw new Problem(response.status, { detail: "The response cannot be read." });
  return response.text();
}
