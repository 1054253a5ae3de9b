// The identity of the user at the server, and its permissions.
import { signal } from "./lib.mjs";
import { get, unauthorized } from "./api.mjs";

const ranks = ["viewer", "operator", "admin"];

export const me = signal(null);

/** load reads the identity of the user from the server. */
export async function load() {
  me.value = await get("me");
  unauthorized.value = false;
}

/** may reports whether the user's role is sufficient. */
export const may = (role) => ranks.indexOf(me.value?.role ?? "viewer") >= ranks.indexOf(role);
