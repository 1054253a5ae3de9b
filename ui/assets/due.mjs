// The actions on scheduled work: move, skip, fire.
import { html, own } from "./lib.mjs";
import { post } from "./api.mjs";
import { ask } from "./dialog.mjs";
import { may } from "./me.mjs";
import { say } from "./toast.mjs";
import { Field } from "./form.mjs";
import { absolute, exact, localInput, now, span, utc } from "./time.mjs";

const soon = [["+5 m", 300_000], ["+1 h", 3_600_000], ["+1 d", 86_400_000]];

/** dueActions apply to rows {name, due_at, actions: {move, skip, fire}}; the server supplies the paths. */
export const dueActions = [
  { name: "move", label: "Move…", single: true, when: (d) => d.actions?.move, open: (d) => move(d) },
  { name: "skip", label: "Skip", when: (d) => d.actions?.skip, run: (d) => post(d.actions.skip), question: (d) => `${d.name ?? d.id} will not fire ${d.due_at ? "at " + absolute(Date.parse(d.due_at)) : "this time"}.` },
  { name: "fire", label: "Fire now", when: (d) => d.actions?.fire, run: (d) => post(d.actions.fire), question: (d) => `${d.name ?? d.id} will fire now.` },
];

/** whyFixed returns the reason why a row cannot be moved, or nothing if it can be moved. */
export function whyFixed(d) {
  if (!may("operator")) return "Moving work requires the role operator.";
  if (d.actions?.move) return "";
  return own(fixed, d.kind) ?? "This cannot be moved.";
}

const fixed = {
  schedule: "A schedule cannot be moved: its expression determines its ticks. Change the expression on its page, or run it now.",
  instance: "An instance cannot be moved: its step determined when it resumes. Signal, retry or cancel it on its page.",
  hook: "A hook cannot be moved: its trigger or its retry policy determined when it runs. Retry or cancel it on its page.",
  task: "A task cannot be moved: its supervisor determined when it runs. Retry or cancel it on its page.",
};

/**
 * move asks for the new due time of a row, and shows the old time and the new time.
 * @param {object} row @param {number} [proposed] where it was dragged to
 */
export function move(row, proposed) {
  const due = Date.parse(row.due_at);
  const first = proposed ?? Math.max(due || 0, now());
  const chosen = (values) => Date.parse(values.at ?? localInput(first));
  return ask({
    title: `Move ${row.name ?? row.id}?`, text: row.link?.id ?? (row.type && row.id), confirm: "Move", wide: true, ready: proposed !== undefined,
    fields: ({ values, set }) => html`<${Field} label="To" hint="In your time zone"><input type="datetime-local" step="1" required autofocus=${proposed === undefined} value=${values.at ?? localInput(first)} onInput=${(e) => set({ at: e.target.value })} /><//>
      <div class="actions" role="group" aria-label="Later by">${soon.map(([text, ms]) => html`<button type="button" class="small" onClick=${() => set({ at: localInput(chosen(values) + ms) })}>${text}</button>`)}</div>
      <${Moving} from=${due} to=${chosen(values)} />`,
    act: async (v) => {
      const to = chosen(v);
      await post(row.actions.move, { at: new Date(to).toISOString() });
      say(`Moved to ${absolute(to)}`);
    },
  });
}

// Moving compares the exact times, also in UTC: the operator may be in another zone.
function Moving({ from, to }) {
  const row = (name, at) => html`<tr><th scope="row">${name}</th><td>${exact(at) || "no time"}</td><td>${utc(at)}</td></tr>`;
  return html`<table class="compare"><caption class="away">Old and new time</caption>
    <thead><tr><td></td><th scope="col">Your time</th><th scope="col">UTC</th></tr></thead><tbody>${row("Was due", from)}${row("Will be due", to)}</tbody></table>
    <p class="muted">${difference(from, to)}</p>`;
}

function difference(from, to) {
  if (Number.isNaN(from) || Number.isNaN(to)) return "";
  const past = to <= now() ? " The new time is not in the future: it will be due immediately." : "";
  return (Math.abs(to - from) < 1000 ? "The time stays the same." : `${span(to - from)} ${to > from ? "later" : "earlier"}.`) + past;
}
