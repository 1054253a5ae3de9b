// The few libraries that everything else uses, in one place.
import { h, render, isValidElement, Fragment, Component } from "./vendor/preact.mjs";
import { useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useId, useErrorBoundary } from "./vendor/hooks.mjs";
import { signal, computed, effect, batch, useSignal, useComputed } from "./vendor/signals.mjs";
import htm from "./vendor/htm.mjs";
import { stringify } from "./exact.mjs";

// Data that is put in where text belongs is shown as JSON, rather than taken for a
// virtual node.
const plain = (child) => {
  if (Array.isArray(child)) return child.map(plain);
  return child !== null && typeof child === "object" && !isValidElement(child) ? stringify(child) : child;
};

/** html makes virtual nodes of a template. What is put in becomes text, never markup. */
const html = htm.bind((type, props, ...children) => h(type, props, ...children.map(plain)));

/** cls joins the class names that are set. */
const cls = (...names) => names.filter(Boolean).join(" ");

/** own returns what a table of ours has under a name that came from elsewhere. */
const own = (table, name) => (Object.hasOwn(table, name) ? table[name] : undefined);

export {
  html, cls, own, render, Fragment, Component,
  useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useId, useErrorBoundary,
  signal, computed, effect, batch, useSignal, useComputed,
};
