// What can be done to something that is due later: move, skip, fire.
import { html } from "./lib.mjs";
import { post } from "./api.mjs";
import { ask } from "./dialog.mjs";
import { say } from "./toast.mjs";
import { Field } from "./form.mjs";
import { localInput, now, absolute } from "./time.mjs";

const soon = [["+5 m", 300_000], ["+1 h", 3_600_000], ["+1 d", 86_400_000]];

/** dueActions are for rows {name, due_at, actions: {move, skip, fire}}, whose paths the server gives. */
export const dueActions = [
  { name: "move", label: "Move", single: true, when: (d) => d.actions?.move, open: move },
  { name: "skip", label: "Skip", when: (d) => d.actions?.skip, run: (d) => post(d.actions.skip), question: (d) => `${d.name ?? d.id} does not happen ${d.due_at ? "at " + absolute(Date.parse(d.due_at)) : "this time"}.` },
  { name: "fire", label: "Fire now", when: (d) => d.actions?.fire, run: (d) => post(d.actions.fire), question: (d) => `${d.name ?? d.id} happens at once.` },
];

function move(row) {
  const due = Math.max(Date.parse(row.due_at) || 0, now());
  return ask({
    title: `Move ${row.name ?? row.id}`, confirm: "Move",
    fields: ({ values, set }) => html`<${Field} label="To" hint="In your time zone"><input type="datetime-local" step="1" required autofocus value=${values.at ?? localInput(due)} onInput=${(e) => set({ at: e.target.value })} /><//>
      <div class="actions" role="group" aria-label="Later by">${soon.map(([text, ms]) => html`<button type="button" class="small" onClick=${() => set({ at: localInput(Date.parse(values.at ?? localInput(due)) + ms) })}>${text}</button>`)}</div>`,
    act: async (v) => {
      const to = new Date(v.at ?? localInput(due));
      await post(row.actions.move, { at: to.toISOString() });
      say(`Moved to ${absolute(to)}`);
    },
  });
}
