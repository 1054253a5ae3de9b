// Resources that are read again when they change.
import { useState, useEffect, useRef, useCallback } from "./lib.mjs";
import { get } from "./api.mjs";
import { listen, paused } from "./stream.mjs";

/** A page reads a resource again at most this often. */
const pace = 1000;

/**
 * useLive reads a path and keeps what it read fresh.
 * @param {string|null} path null reads nothing
 * @param {object} [params]
 * @param {object} [options] kinds: what to listen to; id: only changes of this one; every: also read every so many ms
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

// read has at most one request under way, and at least pace between two of them.
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
      // What was read before stays: an old answer helps more than none.
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
