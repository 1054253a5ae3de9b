// Dialogs: native <dialog> elements, which keep the focus inside and close on Escape.
import { html, signal, useLayoutEffect, useRef, useState, useId } from "./lib.mjs";
import { because } from "./api.mjs";
import { ReasonField } from "./form.mjs";
import { describe } from "./toast.mjs";

const open = signal(null);

/** show opens a dialog; content receives close(result). The promise resolves to the result, or to undefined if the dialog was dismissed. */
export function show(content, options = {}) {
  return new Promise((resolve) => {
    const entry = {
      content, options,
      close(result) {
        if (open.peek() !== entry) return;
        open.value = null;
        resolve(result);
      },
    };
    open.value = entry;
  });
}

/** isOpen reports whether a dialog is open: it disables the keys of the page. */
export const isOpen = () => open.peek() !== null;

/** Dialogs renders the open dialogs. */
export function Dialogs() {
  const d = open.value;
  return d && html`<${Dialog} key=${d} ...${d} />`;
}

function Dialog({ content: Content, options, close }) {
  const ref = useRef(null);
  const id = useId();
  useLayoutEffect(() => {
    const dialog = ref.current;
    dialog.showModal();
    return () => dialog.close(); // which restores the focus
  }, []);
  return html`<dialog ref=${ref} class=${options.wide ? "wide" : ""} aria-labelledby=${id}
      onClose=${() => close()}
      onKeyDown=${(e) => { if (e.key === "Escape") { e.preventDefault(); close(); } }}
      onClick=${(e) => { if (e.target === ref.current) close(); }}>
    <div class="dialog">
      <h2 id=${id}>${options.title}</h2>
      <${Content} close=${close} />
    </div>
  </dialog>`;
}

/**
 * ask shows a question and calls act if it is confirmed. If act fails, the dialog stays open
 * and shows the error. The promise resolves to the result of act, or to undefined if dismissed.
 * The last field is the optional reason; why is its initial text. act receives the values and
 * the reason; the requests that act makes before its first await carry the reason.
 * ready puts the focus on the confirm button instead of the fields.
 */
export function ask({ title, text, confirm, danger = false, act, wide, fields, ready = !fields, why: first = "" }) {
  return show(function Ask({ close }) {
    const [busy, setBusy] = useState(false);
    const [error, setError] = useState(null);
    const [values, setValues] = useState({ why: first });
    const latest = useRef(values); // the latest input, even if it is not rendered yet
    const set = (v) => { latest.current = { ...latest.current, ...v }; setValues(latest.current); };
    async function submit(e) {
      e.preventDefault();
      setBusy(true);
      try {
        const { why, ...answers } = latest.current;
        close((await because(why, () => act(answers, why))) ?? true);
      } catch (err) {
        setError(err);
        setBusy(false);
      }
    }
    const Fields = fields;
    return html`<form onSubmit=${submit}>
      ${text && html`<p>${text}</p>`}
      ${Fields && html`<${Fields} values=${values} set=${set} />`}
      <${ReasonField} values=${values} set=${set} />
      ${error && html`<p class="wrong" role="alert">${describe(error)}</p>`}
      <div class="buttons">
        <button type="button" onClick=${() => close()}>Close</button>
        <button class=${danger ? "danger" : "primary"} disabled=${busy} data-confirm autofocus=${ready}>${confirm}</button>
      </div>
    </form>`;
  }, { title, wide });
}
