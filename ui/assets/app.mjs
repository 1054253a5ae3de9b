// Starts the dashboard.
import { html, render } from "./lib.mjs";
import { start as startRouter } from "./router.mjs";
import { start as startStream } from "./stream.mjs";
import { start as startKeyboard } from "./keyboard.mjs";
import { start as startTheme } from "./theme.mjs";
import { load } from "./me.mjs";
import { Shell } from "./shell.mjs";

startTheme();
startRouter();
startKeyboard();
render(html`<${Shell} />`, document.getElementById("app"));
load().catch(() => { /* every page shows its own error */ }).finally(startStream);
