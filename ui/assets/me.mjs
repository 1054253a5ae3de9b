// Who we are to the server, and what we may do.
import { signal } from "./lib.mjs";
import { get, unauthorized } from "./api.mjs";

const ranks = ["viewer", "operator", "admin"];

export const me = signal(null);

/** load asks the server who we are. */
export async function load() {
  me.value = await get("me");
  unauthorized.value = false;
}

/** may says whether our role is enough. */
export const may = (role) => ranks.indexOf(me.value?.role ?? "viewer") >= ranks.indexOf(role);
