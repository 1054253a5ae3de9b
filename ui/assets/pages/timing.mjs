// The fields for the ticks of a schedule.
import { cls, html, useEffect, useState } from "../lib.mjs";
import { useLive } from "../live.mjs";
import { Field } from "../form.mjs";
import { inZone, relative, tick } from "../time.mjs";

const zones = () => Intl.supportedValuesOf?.("timeZone") ?? [];

const patience = 250; // ms between the last key and the request

// Preview shows the ticks of an expression while it is being typed. Its space is reserved
// until the server has responded: the buttons below must not move under a click.
function Preview({ spec, zone }) {
  const [asked, setAsked] = useState({ spec, zone });
  useEffect(() => {
    const timer = setTimeout(() => setAsked({ spec, zone }), patience);
    return () => clearTimeout(timer);
  }, [spec, zone]);
  const { data } = useLive(asked.spec ? "ticks" : null, asked);
  return html`<p class=${cls("ticks", data && !data.valid ? "wrong" : "muted")} role="status" data-ticks>${data && ticksText(data, zone)}</p>`;
}

function ticksText({ valid, problem, text, next }, zone) {
  if (!valid) return problem;
  const times = (next ?? []).slice(0, 3);
  return `${text}. Next: ${times.map((t) => inZone(t, zone)).join(" · ")}${times.length ? ` (${relative(Date.parse(times[0]), tick.value)})` : ""}`;
}

/** Timing edits spec, zone, missed and max_missed, optionally with a preview of the ticks. */
export function Timing({ values, set, preview = true }) {
  const text = (name, label, hint, more = {}) => html`<${Field} label=${label} hint=${hint}><input type="text" name=${name} required spellcheck=${false} autocomplete="off" value=${values[name] ?? ""} onInput=${(e) => set({ [name]: e.target.value })} ...${more} /><//>`;
  const interval = String(values.spec ?? "").startsWith("@every");
  return html`<div class="side">
    ${text("spec", "When", "A cron expression such as 30 2 * * *, @daily, or @every 90s")}
    ${text("zone", "Time zone", interval ? "Not used by intervals" : "For example Europe/Berlin", { list: "zone-names", disabled: interval, required: false, placeholder: "UTC" })}
    <datalist id="zone-names">${zones().map((z) => html`<option value=${z} />`)}</datalist>
    <${Field} label="Missed ticks" hint="Ticks while no process ran"><select name="missed" value=${values.missed} onChange=${(e) => set({ missed: e.target.value })}>
      <option value="once">run once for all</option><option value="skip">skip all</option><option value="all">run each</option></select><//>
    ${values.missed === "all" && html`<${Field} label="Maximum" hint="Missed ticks to run"><input type="number" name="max_missed" min="1" max="1000" required value=${String(values.max_missed ?? 100)} onInput=${(e) => set({ max_missed: Number(e.target.value) })} /><//>`}
  </div>
  ${preview && html`<${Preview} spec=${values.spec} zone=${interval ? "" : values.zone} />`}`;
}
