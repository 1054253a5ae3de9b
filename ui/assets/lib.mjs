// The few libraries that everything else uses, in one place.
import { h, render, Fragment, Component } from "./vendor/preact.mjs";
import { useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useId, useErrorBoundary } from "./vendor/hooks.mjs";
import { signal, computed, effect, batch, useSignal, useComputed } from "./vendor/signals.mjs";
import htm from "./vendor/htm.mjs";

/** html makes virtual nodes of a template. What is put in becomes text, never markup. */
const html = htm.bind(h);

/** cls joins the class names that are set. */
const cls = (...names) => names.filter(Boolean).join(" ");

/** own returns what a table of ours has under a name that came from elsewhere. */
const own = (table, name) => (Object.hasOwn(table, name) ? table[name] : undefined);

export {
  html, cls, own, render, Fragment, Component,
  useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useId, useErrorBoundary,
  signal, computed, effect, batch, useSignal, useComputed,
};
