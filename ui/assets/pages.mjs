// All pages: their paths, titles and keys.
import { Overview } from "./pages/overview.mjs";
import { Upcoming } from "./pages/upcoming.mjs";
import { Instances } from "./pages/instances.mjs";
import { Instance } from "./pages/instance.mjs";
import { Definitions, Definition } from "./pages/definitions.mjs";
import { Schedules } from "./pages/schedules.mjs";
import { Schedule } from "./pages/schedule.mjs";
import { Actors } from "./pages/actors.mjs";
import { Actor } from "./pages/actor.mjs";
import { Statecharts, Statechart } from "./pages/statecharts.mjs";
import { Alarms, Alarm } from "./pages/alarms.mjs";
import { Hooks, Hook } from "./pages/hooks.mjs";
import { Tasks, Task } from "./pages/tasks.mjs";
import { Dead } from "./pages/dead.mjs";
import { Outbox } from "./pages/outbox.mjs";
import { Nodes } from "./pages/nodes.mjs";
import { Audit } from "./pages/audit.mjs";
import { Mailbox } from "./pages/mailbox.mjs";
import { Settings } from "./pages/settings.mjs";

/** Groups of pages, as the navigation shows them. A page with names below it has a detail; a page with a role requires that role or a higher one. */
export const groups = [
  ["", [
    { path: "", title: "Overview", key: "o", page: Overview },
    { path: "upcoming", title: "Upcoming", key: "u", page: Upcoming },
    { path: "dead", title: "Dead letters", key: "d", page: Dead },
  ]],
  ["Work", [
    { path: "instances", title: "Instances", key: "i", page: Instances, detail: Instance, names: 1 },
    { path: "actors", title: "Actors", key: "a", page: Actors, detail: Actor, names: 2 },
    { path: "hooks", title: "Hooks", key: "h", page: Hooks, detail: Hook, names: 1 },
    { path: "tasks", title: "Tasks", key: "t", page: Tasks, detail: Task, names: 1 },
    { path: "alarms", title: "Alarms & timers", key: "l", page: Alarms, detail: Alarm, names: 1 },
    { path: "schedules", title: "Schedules", key: "s", page: Schedules, detail: Schedule, names: 1 },
  ]],
  ["Definitions", [
    { path: "definitions", title: "State machines", key: "f", page: Definitions, detail: Definition, names: 1 },
    { path: "statecharts", title: "Statecharts", key: "m", page: Statecharts, detail: Statechart, names: 1 },
  ]],
  ["System", [
    { path: "outbox", title: "Outbox", key: "x", page: Outbox },
    { path: "nodes", title: "Nodes", key: "n", page: Nodes },
    { path: "audit", title: "Audit log", key: "w", page: Audit, role: "operator" },
    { path: "mailbox", title: "Mailbox", key: "b", page: Mailbox, dev: true },
    { path: "settings", title: "Settings", key: "e", page: Settings },
  ]],
];

export const pages = groups.flatMap(([, all]) => all);

/** find returns the page of an address, and the names after the page in the path. */
export function find(names) {
  const page = pages.find((p) => p.path === (names[0] ?? ""));
  if (!page) return null;
  const below = names.slice(1);
  if (!below.length) return { page, Component: page.page, names: below };
  return page.detail && below.length === page.names ? { page, Component: page.detail, names: below } : null;
}
