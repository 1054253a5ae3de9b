// Forms for JSON: fields for the properties of a schema, and always text.
import { html, useState, useId } from "./lib.mjs";
import { parse, stringify } from "./exact.mjs";

/**
 * JSONField edits a JSON value. onChange receives the value, or undefined while the text is not JSON.
 * With a schema of an object it shows a field for each property; one click shows the text.
 */
export function JSONField({ label, schema, value, onChange, rows = 8 }) {
  const fields = schema?.type === "object" && Object.keys(schema.properties ?? {}).length > 0;
  const [asText, setAsText] = useState(!fields);
  return html`<div class="json-field">
    ${fields && html`<div class="switch" role="group" aria-label=${label + " as"}>
      <button type="button" class="small" aria-pressed=${!asText} onClick=${() => setAsText(false)}>Form</button>
      <button type="button" class="small" aria-pressed=${asText} onClick=${() => setAsText(true)}>JSON</button>
    </div>`}
    ${asText ? html`<${Text} ...${{ label, value, onChange, rows }} />`
      : html`<fieldset><legend>${label}</legend><${Properties} ...${{ schema, value: value ?? {}, onChange }} /></fieldset>`}
  </div>`;
}

function Text({ label, value, onChange, rows }) {
  const [text, setText] = useState(value === undefined ? "" : stringify(value, 2));
  const [wrong, setWrong] = useState("");
  const id = useId();
  function input(e) {
    setText(e.target.value);
    try {
      const parsed = e.target.value.trim() === "" ? undefined : parse(e.target.value);
      setWrong("");
      onChange(parsed, true);
    } catch (error) {
      setWrong(error.message);
      onChange(undefined, false);
    }
  }
  return html`<label class="field"><span>${label} <span class="muted">JSON</span></span>
    <textarea rows=${rows} spellcheck=${false} aria-invalid=${wrong !== ""} aria-describedby=${wrong ? id : undefined} value=${text} onInput=${input}></textarea>
  </label>${wrong && html`<p id=${id} class="wrong">${wrong}</p>`}`;
}

function Properties({ schema, value, onChange }) {
  const required = schema.required ?? [];
  const set = (name, v) => {
    const next = { ...value, [name]: v };
    if (v === undefined) delete next[name];
    onChange(next, true);
  };
  return Object.entries(schema.properties).map(([name, s]) => html`<${Property} key=${name} name=${name} schema=${s} required=${required.includes(name)}
    value=${value[name]} onChange=${(v) => set(name, v)} />`);
}

const typeOf = (schema) => (Array.isArray(schema.type) ? schema.type.find((t) => t !== "null") : schema.type);

function Property({ name, schema, required, value, onChange }) {
  const type = typeOf(schema);
  if (type === "object" && Object.keys(schema.properties ?? {}).length) {
    return html`<fieldset><legend>${name}</legend><${Properties} ...${{ schema, value: value ?? {}, onChange }} /></fieldset>`;
  }
  if (type === "array" || type === "object" || !type && !schema.enum) {
    return html`<${Text} label=${name} rows=${3} value=${value ?? schema.default} onChange=${(v, ok) => ok && onChange(v)} />`;
  }
  return html`<label class="field"><span>${name}${required && html` <span class="muted">required</span>`}</span>
    <${Scalar} ...${{ type, schema, required, value: value ?? schema.default, onChange }} />
    ${schema.description && html`<small class="muted">${schema.description}</small>`}</label>`;
}

function Scalar({ type, schema, required, value, onChange }) {
  if (schema.enum) {
    return html`<select value=${value ?? ""} onChange=${(e) => onChange(e.target.value || undefined)}>
      ${!required && html`<option value=""></option>`}${schema.enum.map((v) => html`<option value=${v}>${String(v)}</option>`)}</select>`;
  }
  if (type === "boolean") return html`<input type="checkbox" checked=${value === true} onChange=${(e) => onChange(e.target.checked)} />`;
  if (type === "integer" || type === "number") {
    return html`<input type="number" step=${type === "integer" ? 1 : "any"} min=${schema.minimum} max=${schema.maximum} required=${required} value=${value === undefined ? "" : String(value)}
      onInput=${(e) => onChange(e.target.value === "" ? undefined : number(e.target.value))} />`;
  }
  return html`<input type="text" required=${required} minlength=${schema.minLength} maxlength=${schema.maxLength} value=${value ?? ""} onInput=${(e) => onChange(e.target.value === "" && !required ? undefined : e.target.value)} />`;
}

const number = (text) => (Number.isSafeInteger(Number(text)) || !/^-?\d+$/.test(text) ? Number(text) : BigInt(text));

const mask = '"[redacted]"'; // the server's replacement for a secret

/** whole returns an edited value. It throws if the value contains the mask, which must not be stored. */
export function whole(value) {
  if ((stringify(value) ?? "").includes(mask)) throw new Error("Some values are hidden. Replace every [redacted] with a value, or leave the whole field unchanged.");
  return value;
}

/** Field is a labeled input. */
export function Field({ label, hint, children }) {
  return html`<label class="field"><span>${label}</span>${children}${hint && html`<small class="muted">${hint}</small>`}</label>`;
}

// The server keeps 1,000 bytes of a reason, and a UTF-16 code unit has at most three.
const longest = 333;

/** ReasonInput is the input for a reason. */
export const ReasonInput = ({ value, onText, ...more }) => html`<input type="text" name="why" maxlength=${longest} autocomplete="off" value=${value ?? ""} onInput=${(e) => onText(e.target.value)} ...${more} />`;

/** ReasonField asks for the reason of a change. Its text is the value named why. */
export const ReasonField = ({ values, set }) => html`<${Field} label="Reason (for the audit log)"><${ReasonInput} value=${values.why} onText=${(why) => set({ why })} /><//>`;

/** sample returns a value that matches a schema, as a start for editing. */
export function sample(schema) {
  if (!schema) return {};
  if (schema.default !== undefined) return schema.default;
  if (schema.enum) return schema.enum[0];
  const type = typeOf(schema);
  if (type === "object") return Object.fromEntries((schema.required ?? []).filter((n) => schema.properties?.[n]).map((n) => [n, sample(schema.properties[n])]));
  return { string: "", integer: 0, number: 0, boolean: false, array: [] }[type];
}
