// Resources that are reloaded when they change.
import { useState, useEffect, useRef, useCallback } from "./lib.mjs";
import { get } from "./api.mjs";
import { listen, paused } from "./stream.mjs";

/** The minimum time between two reads of a resource by a page, in ms. */
const pace = 1000;

/**
 * useLive reads a path and keeps its data fresh.
 * @param {string|null} path null reads nothing
 * @param {object} [params]
 * @param {object} [options] kinds: the kinds of changes to listen for; id: only changes of this id; every: also read at this interval in ms
 * @returns {{data: any, error: Error|null, loading: boolean, refresh: () => void}}
 */
export function useLive(path, params = {}, { kinds = [], id, every } = {}) {
  const key = path === null ? null : path + "?" + new URLSearchParams(clean(params));
  const [state, setState] = useState({ data: null, error: null, loading: true, key });
  const reader = useRef(null);
  useEffect(() => {
    const set = (change) => setState((old) => ({ ...old, loading: false, ...change, key }));
    if (key === null) {
      set({ data: null, error: null });
      return;
    }
    set({ loading: true });
    const r = (reader.current = read(path, params, set));
    r.now();
    const concerns = (changes) => changes.has("*") || kinds.some((kind) => {
      const ids = changes.get(kind);
      return ids !== undefined && (ids === null || id === undefined || ids.has(id));
    });
    const stop = listen((changes) => { if (concerns(changes)) r.soon(); });
    const timer = every ? setInterval(() => { if (!paused.peek() && !document.hidden) r.soon(); }, every) : 0;
    return () => { stop(); clearInterval(timer); r.stop(); };
  }, [key]);
  const refresh = useCallback(() => reader.current?.now(), []);
  return { ...state, loading: state.loading || state.key !== key, refresh };
}

const clean = (params) => Object.fromEntries(Object.entries(params).filter(([, v]) => v !== undefined && v !== null && v !== ""));

// read has at most one request in flight, and waits at least pace between two requests.
function read(path, params, set) {
  let abort = null;
  let timer = 0;
  let again = false;
  let stopped = false;
  let last = 0;
  async function run() {
    abort = new AbortController();
    last = performance.now();
    try {
      const data = await get(path, params, abort.signal);
      set({ data, error: null });
    } catch (error) {
      if (error.name === "AbortError") return;
      // Keep the data of the last successful read: old data is better than none.
      set({ error });
    }
    abort = null;
    if (again) soon();
  }
  function soon() {
    again = true;
    if (abort || timer) return;
    timer = setTimeout(() => { timer = 0; again = false; run(); }, Math.max(0, last + pace - performance.now()));
  }
  return {
    now() { if (abort) again = true; else if (!stopped) run(); },
    soon,
    stop() { stopped = true; clearTimeout(timer); abort?.abort(); again = false; },
  };
}
