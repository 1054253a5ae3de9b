// Sign-in: exchanges an API token for a session cookie.
import { html, useState } from "./lib.mjs";
import { post, title } from "./api.mjs";
import { load } from "./me.mjs";
import { describe } from "./toast.mjs";
import { Field } from "./form.mjs";

/** SignIn asks for an API token. */
export function SignIn() {
  const [token, setToken] = useState("");
  const [error, setError] = useState(null);
  async function submit(e) {
    e.preventDefault();
    try {
      await post("session", { token: token.trim() });
      await load();
      location.reload();
    } catch (err) {
      setError(err);
    }
  }
  return html`<main class="signin"><form onSubmit=${submit}>
    <h1><span class="mark" aria-hidden="true"></span>${title}</h1>
    <${Field} label="API token" hint="Create one with: perdure token create"><input type="password" autocomplete="current-password" autofocus required value=${token} onInput=${(e) => setToken(e.target.value)} /><//>
    ${error && html`<p class="wrong" role="alert">${describe(error)}</p>`}
    <button class="primary">Sign in</button>
  </form></main>`;
}
