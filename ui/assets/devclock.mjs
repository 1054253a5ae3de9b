// The sample clock of perdure dev, which can be stopped, sped up and advanced.
import { html, useEffect, useRef } from "./lib.mjs";
import { post, skew } from "./api.mjs";
import { useLive } from "./live.mjs";
import { show } from "./dialog.mjs";
import { useKeys } from "./keyboard.mjs";
import { absolute, hourText, relative, tick } from "./time.mjs";
import { fail } from "./toast.mjs";
import { Icon } from "./status.mjs";

const speeds = [1, 5, 20]; // the last is the fastest speed that the samples keep up with
const strides = [["10 minutes", "10m"], ["1 hour", "1h"], ["1 day", "24h"]];

/** DevClock shows the time of the sample clock; a click changes it. */
export function DevClock() {
  const { data } = useLive("dev/clock", {}, { every: 3000 });
  const now = Date.parse(data?.now ?? "");
  useEffect(() => { if (!Number.isNaN(now)) skew.value = now - Date.now(); }, [now]);
  useKeys({ w: ["Change the sample clock", open] }, "Everywhere");
  if (!data) return null;
  return html`<button class="plain devclock" data-devclock title="Sample clock. Key: w" onClick=${open}>
    <${Icon} shape=${data.paused ? "pause" : "wait"} /><span>${hourText(tick.value)}${data.paused ? " paused" : data.speed !== 1 ? ` ×${data.speed}` : ""}</span></button>`;
}

function open() { show(Controls, { title: "Sample clock" }); }

function Controls({ close }) {
  const { data, refresh } = useLive("dev/clock", {}, { every: 1000 });
  const first = useRef(null);
  useEffect(() => { first.current?.focus(); }, [data !== null]);
  const act = (body) => post("dev/clock", body).then(refresh, fail);
  if (!data) return html`<p class="muted" aria-busy="true">Loading…</p>`;
  return html`
    <p class="countdown">${absolute(Date.parse(data.now))}</p>
    <p class="muted">${data.next_due ? html`The next work item is due ${relative(Date.parse(data.next_due), Date.parse(data.now))}.` : "No work is due."}</p>
    <div class="actions" role="group" aria-label="Speed">
      <button data-clock="pause" onClick=${() => act({ action: data.paused ? "resume" : "pause" })}>${data.paused ? "Resume" : "Pause"}</button>
      ${speeds.map((s) => html`<button key=${s} aria-pressed=${!data.paused && data.speed === s} onClick=${() => act({ action: "speed", speed: s })}>×${s}</button>`)}
    </div>
    <p></p>
    <div class="actions" role="group" aria-label="Forward">
      <button data-clock="skip" ref=${first} onClick=${() => act({ action: "skip" })}>To the next due time</button>
      ${strides.map(([text, by]) => html`<button key=${by} onClick=${() => act({ action: "forward", by })}>+ ${text}</button>`)}
    </div>
    <div class="buttons"><button class="primary" onClick=${() => close()}>Done</button></div>`;
}
