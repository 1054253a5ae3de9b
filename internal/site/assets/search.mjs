// Search as you type: "/" focuses the field, the arrow keys move through the results.
// The server has the index and searches; without this script the form does it.
const root = document.body.dataset.root;
const field = document.getElementById("q");
const found = document.getElementById("found");

/** element makes an element with text, or with others in it. */
function element(name, ...content) {
  const e = document.createElement(name);
  e.append(...content);
  return e;
}

/** row shows one place that was found. */
function row(hit) {
  const a = element("a", element("b", hit.heading ? `${hit.title} › ${hit.heading}` : hit.title), element("small", hit.text));
  a.href = root + hit.url;
  return a;
}

function show(hits) {
  found.replaceChildren(...(hits.length ? hits.slice(0, 10).map(row) : [element("p", "No results.")]));
  found.hidden = false;
}

let latest = 0;
let timer = 0;

/** cancel drops the pending request: its response no longer changes the list. */
function cancel() {
  clearTimeout(timer);
  latest++;
}

function hide() {
  cancel();
  found.hidden = true;
}

/** find asks the server; an answer that comes after a later question is dropped. */
async function find() {
  const mine = ++latest;
  const query = field.value.trim();
  if (query === "") return hide();
  try {
    const answer = await fetch(`${root}search.json?q=${encodeURIComponent(query)}`);
    const hits = answer.ok ? await answer.json() : [];
    if (mine === latest) show(hits);
  } catch {
    if (mine === latest) hide(); // offline: the form says so when it is sent
  }
}

field.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(find, 120);
});

/** move goes up and down between the field and the rows. */
function move(step) {
  cancel();
  const stops = [field, ...found.querySelectorAll("a")];
  const at = stops.indexOf(document.activeElement);
  stops[Math.min(Math.max(at + step, 0), stops.length - 1)].focus();
}

field.form.addEventListener("keydown", (event) => {
  if (found.hidden) return;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    move(event.key === "ArrowDown" ? 1 : -1);
  } else if (event.key === "Escape") {
    field.focus();
    hide();
  }
});

field.form.addEventListener("focusout", (event) => {
  if (!field.form.contains(event.relatedTarget)) hide();
});

addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  field.focus();
  field.select();
});
