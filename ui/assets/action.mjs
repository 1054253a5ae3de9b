// Actions on one row, on the selected rows, or on all rows that match a filter.
import { html, signal, useEffect } from "./lib.mjs";
import { because, post } from "./api.mjs";
import { ask } from "./dialog.mjs";
import { may } from "./me.mjs";
import { say, fail } from "./toast.mjs";
import { Field, ReasonInput } from "./form.mjs";

/** confirmed asks for confirmation and for a reason, which it passes to act. The confirm button has the focus. */
export const confirmed = ({ act, ...question }) => ask({ ...question, act: (_, why) => act(why) });

// note is the reason that was typed next to the buttons of a page, for the next action.
const note = signal("");

// Note is the input for note on the page of one row.
function Note({ of }) {
  useEffect(() => () => { note.value = ""; }, [of]);
  return html`<label class="note"><span class="away">Reason for the next action (for the audit log)</span><${ReasonInput} value=${note.value} onText=${(text) => { note.value = text; }} placeholder="Reason (optional)" /></label>`;
}

// asks reports whether an action asks for confirmation.
const asks = (action) => Boolean(action.danger || action.question);

/**
 * An action is {name, label, past, key, danger, role, statuses, when(row), run(row, why), question(row), message(result, row)}:
 * it applies to rows with one of its statuses. With some: true, it is not offered for all
 * rows that match a filter. message returns the text about the result. usable reports
 * whether the action can be applied to a row now.
 */
export const usable = (action, row) => may(action.role ?? "operator") && (!action.statuses || action.statuses.includes(row.status)) && (!action.when || action.when(row));

/** perform applies an action to one row. It asks first if the action requires confirmation or the user wants to give a reason. */
export async function perform(action, row, one, reasoned = false) {
  if (action.open) return action.open(row);
  const name = row.name ?? row.id ?? "";
  const act = (why) => action.run(row, why).then((result) => {
    note.value = "";
    say(action.message?.(result, row) ?? `${action.label}: ${one} ${name}`);
  });
  if (!asks(action) && !reasoned) return because(note.peek(), () => act(note.peek())).catch(fail);
  return confirmed({
    title: `${action.label} this ${one}?`, text: action.question?.(row) ?? `${name}`,
    confirm: confirming(action, one), danger: action.danger, act, why: note.peek(),
  });
}

// confirming is the label of the confirm button: "Cancel" alone could mean the button that dismisses.
const confirming = (action, what) => (action.label.includes(" ") ? action.label : `${action.label} ${what}`);

// hint describes the key and the shift+click of a button.
const hint = (action) => [action.key && `Key: ${action.key}`, !asks(action) && !action.open && "Shift+click: with a reason"].filter(Boolean).join(" · ") || undefined;

/** Actions are the buttons for one row. */
export function Actions({ actions, row, one, small, after }) {
  const shown = actions.filter((a) => usable(a, row));
  if (!shown.length) return null;
  return html`<div class="actions">
    ${!small && shown.some((a) => !asks(a) && !a.open) && html`<${Note} of=${row.name ?? row.id} />`}
    ${shown.map((a) => html`<button key=${a.name} type="button" class=${[small && "small", a.danger && "danger", a.primary && "primary"].filter(Boolean).join(" ")}
      data-action=${a.name} title=${hint(a)} onClick=${(e) => Promise.resolve(perform(a, row, one, e.shiftKey)).then(() => after?.())}>${a.label}</button>`)}
  </div>`;
}

const counted = (n, one) => `${n.toLocaleString()} ${one}${n === 1 ? "" : "s"}`;

/** onSelection applies an action to the selected rows. */
export function onSelection(action, rows, spec) {
  const fit = rows.filter((r) => usable(action, r));
  if (!fit.length) return say(`No selected row can be ${action.past ?? "changed"} now.`, "bad");
  return confirmed({
    title: `${action.label} ${counted(fit.length, spec.one)}?`,
    text: fit.length < rows.length ? `${rows.length - fit.length} of the selected rows cannot be ${action.past ?? "changed"} now and will not change.` : "",
    confirm: confirming(action, counted(fit.length, spec.one)), danger: action.danger,
    act: async (why) => report(action, await each(action, fit, spec, why), spec),
  });
}

async function each(action, rows, spec, why) {
  if (spec.bulk) return post(spec.bulk, { action: action.name, ids: rows.map(spec.id) });
  let done = 0;
  const queue = [...rows];
  const worker = async () => {
    for (let row = queue.shift(); row; row = queue.shift()) {
      // A row that was changed concurrently does not stop the others.
      await because(why, () => action.run(row, why)).then(() => done++, (e) => { if (![404, 409, 422].includes(e.status)) throw e; });
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return { matched: rows.length, done };
}

const atOnce = 4; // concurrent requests

// narrowed limits a filter to the statuses that the action applies to; null if none is left.
function narrowed(action, filter, spec) {
  const asked = filter.status && (spec.groups?.[filter.status] ?? [filter.status]);
  const status = asked ? action.statuses.filter((s) => asked.includes(s)) : (action.all ?? action.statuses);
  return status.length ? { ...filter, status } : null;
}

const many = 100; // rows above which an action on all that match has to be typed

// Typed is a field in which the number of rows has to be typed.
const Typed = (n) => ({ values, set }) => html`<${Field} label=${`Type ${n} to confirm`}><input type="text" inputmode="numeric" required autofocus pattern=${n} value=${values.typed ?? ""} onInput=${(e) => set({ typed: e.target.value })} /><//>`;

/** onMatching applies an action to all rows that match, after it has shown their number. */
export async function onMatching(action, filter, spec) {
  const nothing = () => say(`No matching row can be ${action.past ?? "changed"}.`);
  const all = { action: action.name, filter: narrowed(action, filter, spec) };
  if (!all.filter) return nothing();
  let found;
  try {
    found = await post(spec.bulk, { ...all, dry_run: true });
  } catch (error) {
    return fail(error);
  }
  if (!found.matched) return nothing();
  const what = Object.entries(filter).map(([k, v]) => `${k}:${v}`).join(" ") || "no filter";
  return confirmed({
    fields: found.matched > many ? Typed(String(found.matched)) : undefined,
    title: `${action.label} ${found.capped ? "at least " : ""}${counted(found.matched, spec.one)}?`,
    text: `All rows that match now (${what}).${found.capped ? " One request changes at most this number; repeat it for the rest." : ""}`,
    confirm: `${action.label} ${found.matched.toLocaleString()}`, danger: action.danger,
    act: async () => report(action, await post(spec.bulk, all), spec),
  });
}

function report(action, result, spec) {
  const skipped = (result.matched ?? 0) - (result.done ?? 0);
  const why = result.errors?.length ? `: ${result.errors[0].message}` : "";
  say(`${action.label}: ${counted(result.done ?? 0, spec.one)}${skipped > 0 ? `, ${skipped.toLocaleString()} could not be ${action.past ?? "changed"}${why}` : ""}`);
  return true;
}
