// The libraries of the dashboard, in one place.
import { h, render, isValidElement, Fragment, Component } from "./vendor/preact.mjs";
import { useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useId, useErrorBoundary } from "./vendor/hooks.mjs";
import { signal, computed, effect, batch, useSignal, useComputed } from "./vendor/signals.mjs";
import htm from "./vendor/htm.mjs";
import { stringify } from "./exact.mjs";

// An object that is inserted as text is shown as JSON. It is never treated as a
// virtual node.
const plain = (child) => {
  if (Array.isArray(child)) return child.map(plain);
  return child !== null && typeof child === "object" && !isValidElement(child) ? stringify(child) : child;
};

/** html builds virtual nodes from a template. Inserted values become text, never markup. */
const html = htm.bind((type, props, ...children) => h(type, props, ...children.map(plain)));

/** cls joins the class names that are set. */
const cls = (...names) => names.filter(Boolean).join(" ");

/** own returns an object's own property for an untrusted name. */
const own = (table, name) => (Object.hasOwn(table, name) ? table[name] : undefined);

export {
  html, cls, own, render, Fragment, Component,
  useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useId, useErrorBoundary,
  signal, computed, effect, batch, useSignal, useComputed,
};
