// The page: two texts on one side, what celsius simulate says of them on the other. Answers are set as text, never parsed as HTML.
const by = (id) => document.getElementById(id);
const fields = { policy: by("policy"), world: by("world"), cycles: by("cycles"), until: by("until"), now: by("now") };
const pause = 250; // milliseconds without a key before it is simulated
const patience = 60000; // milliseconds after which a simulation is ended

let worker, waiting = null, asked = 0, began = 0, timer = 0, ending = 0, last = null, shows = "plan";

function say(word, kind = "plain") {
  by("state").textContent = word;
  by("state").className = "state " + kind;
}

function start() {
  worker = new Worker("worker.js");
  worker.ready = false;
  worker.onmessage = ({ data }) => {
    if (data.failed) return fail("The simulator could not be loaded: " + data.failed);
    if (data.ready) {
      worker.ready = true;
      if (waiting) send();
    } else if (data.broke) {
      restart();
      fail("The simulator broke, and was started again: " + data.broke);
    } else if (data.number === asked) {
      clearTimeout(ending);
      show(data.answer, data.took);
    }
  };
  worker.onerror = (e) => { clearTimeout(ending); fail("The simulator ended: " + e.message); };
}

function fail(text) {
  show({ plan: "", reasons: "", issues: [], error: text, differs: "" }, 0);
}

// ask has the texts simulated once nobody types any more.
function ask() {
  clearTimeout(timer);
  by("out").classList.add("old");
  timer = setTimeout(() => {
    if (began) restart(); // what runs is about texts that are old
    const cycles = Number(fields.cycles.value);
    if (!Number.isSafeInteger(cycles) || fields.cycles.validity.badInput) {
      waiting = null;
      return fail(`Cycles: ${fields.cycles.value || "this"} is no whole number; write one from 1 to ${fields.cycles.max}, or nothing for one.`);
    }
    waiting = { policy: fields.policy.value, world: fields.world.value, cycles, until: fields.until.value.trim(), now: fields.now.value.trim() };
    if (worker.ready) send();
  }, pause);
}

function send() {
  asked++;
  began = performance.now();
  say("running");
  worker.postMessage({ number: asked, question: waiting });
  waiting = null;
  ending = setTimeout(() => {
    restart();
    fail(`The simulation was ended after a minute. Ask for fewer cycles, or a smaller world.`);
  }, patience);
}

function restart() {
  clearTimeout(ending);
  began = 0;
  worker.terminate();
  start();
}

function show(answer, took) {
  began = 0;
  last = answer;
  const errors = answer.issues.filter((i) => !i.warning).length;
  const wrong = errors > 0 || answer.error !== "";
  say(wrong ? "mistakes" : answer.differs ? "differs" : "done", wrong ? "bad" : answer.differs ? "wait" : "good");
  by("took").textContent = wrong ? "" : `in ${took < 10 ? took.toFixed(1) : Math.round(took)} ms`;
  const items = answer.issues.map((i) => {
    const li = document.createElement("li"), place = document.createElement(i.in && i.line ? "button" : "span");
    place.textContent = i.text;
    if (place.tagName === "BUTTON") {
      place.type = "button";
      place.addEventListener("click", () => go(fields[i.in], i.line, i.column));
    }
    li.className = i.warning ? "warned" : "bad";
    li.append(place);
    return li;
  });
  if (answer.error) {
    const li = document.createElement("li");
    li.className = "bad";
    li.textContent = answer.error;
    items.unshift(li);
  }
  by("issues").replaceChildren(...items);
  by("issues").hidden = items.length === 0;
  for (const name of ["policy", "world"]) number(fields[name], answer.issues.filter((i) => i.in === name));
  print();
  document.documentElement.dataset.answered = asked; // for tests
}

// print puts what was asked for into the box. With mistakes the last plan stays, in grey.
function print() {
  if (!last || last.error || last.issues.some((i) => !i.warning)) return;
  const differs = last.differs ? "\nThe scenario expects something else (- is expected, + was printed):\n" + last.differs : "";
  const reasons = last.scenario ? "A scenario asks for reasons itself: add a line \"explain NAME\" to its script." : last.reasons;
  by("out").textContent = shows === "plan" ? last.plan + differs : reasons;
  by("out").classList.remove("old");
}

// go puts the cursor to a place of a text.
function go(area, line, column) {
  const lines = area.value.split("\n");
  const at = lines.slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0);
  const begin = at + [...(lines[line - 1] || "")].slice(0, column - 1).join("").length;
  area.focus();
  area.setSelectionRange(begin, Math.max(begin, at + (lines[line - 1] || "").length));
  area.scrollTop = Math.max(0, (line - 4) * parseFloat(getComputedStyle(area).lineHeight));
}

// number writes the numbers of lines beside a text, and marks those with issues.
function number(area, issues = []) {
  const box = area.parentElement.querySelector(".lines"), marks = new Map();
  for (const i of issues) if (!marks.has(i.line) || !i.warning) marks.set(i.line, i);
  const count = area.value.split("\n").length, parts = [];
  for (let n = 1, from = 1; n <= count; n++) {
    if (!marks.has(n) && n < count) continue;
    const upTo = marks.has(n) ? n - 1 : n;
    parts.push(Array.from({ length: upTo - from + 1 }, (_, k) => from + k + "\n").join(""));
    if (marks.has(n)) {
      const mark = document.createElement("span");
      mark.className = marks.get(n).warning ? "warned" : "bad";
      mark.title = marks.get(n).text;
      mark.textContent = n;
      parts.push(mark, "\n");
    }
    from = n + 1;
  }
  box.replaceChildren(...parts);
  box.scrollTop = area.scrollTop;
}

// A link holds the fields, compressed, behind the #: that part of an address is not sent to a server.
async function packed(fieldsOf) {
  const stream = new Blob([JSON.stringify(fieldsOf)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  return btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join("")).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  return JSON.parse(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).text());
}

function fill(values) {
  for (const [name, field] of Object.entries(fields)) field.value = values[name] || "";
  for (const name of ["policy", "world"]) {
    fields[name].scrollTop = 0;
    number(fields[name]);
  }
  ask();
}

async function share() {
  const values = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.value]));
  history.replaceState(null, "", "#" + await packed(values));
  try {
    await navigator.clipboard.writeText(location.href);
    by("share").textContent = "Copied";
  } catch {
    by("share").textContent = "See the address";
  }
  setTimeout(() => { by("share").textContent = "Copy link"; }, 2000);
}

// linked gives the fields that the address holds; null where it holds none, or they cannot be read, which is said.
async function linked(otherwise) {
  const text = location.hash.slice(1);
  if (!text || by(text)) return null; // a place of the page
  try {
    const values = await unpacked(text);
    if (typeof values.world === "string") return values;
  } catch { /* it was cut off, or is something else */ }
  by("about").textContent = "The link is not whole, so " + otherwise;
  return null;
}

// open shows what a link held.
function open(values) {
  choose.selectedIndex = -1;
  by("about").textContent = "";
  fill(values);
}

start();
for (const field of Object.values(fields)) field.addEventListener("input", ask);
for (const name of ["policy", "world"]) {
  fields[name].addEventListener("input", () => number(fields[name]));
  fields[name].addEventListener("scroll", () => { fields[name].parentElement.querySelector(".lines").scrollTop = fields[name].scrollTop; });
}
for (const chip of document.querySelectorAll("[data-shows]")) {
  chip.addEventListener("click", () => {
    shows = chip.dataset.shows;
    for (const other of document.querySelectorAll("[data-shows]")) other.setAttribute("aria-pressed", String(other === chip));
    print();
  });
}
by("share").addEventListener("click", share);

const examples = await (await fetch("examples.json")).json();
const choose = by("examples");
const groups = new Map();
examples.forEach((e, i) => {
  if (!groups.has(e.group)) {
    const group = document.createElement("optgroup");
    group.label = e.group;
    groups.set(e.group, group);
    choose.append(group);
  }
  const option = document.createElement("option");
  option.value = i;
  option.textContent = e.name;
  groups.get(e.group).append(option);
});
choose.addEventListener("change", () => {
  const e = examples[choose.value];
  history.replaceState(null, "", location.pathname);
  by("about").textContent = e.command ? "As " + e.command : "";
  fill(e);
});
addEventListener("hashchange", async () => {
  const values = await linked("what was there is shown.");
  if (values) open(values);
});
const values = await linked("an example is shown.");
if (values) open(values);
else {
  choose.value = Math.max(0, examples.findIndex((e) => e.policy)); // one with something to edit on both sides
  const e = examples[choose.value];
  if (!by("about").textContent) by("about").textContent = e.command ? "As " + e.command : "";
  fill(e);
}
