import {$, h, keyed, text, roving, amount, round, count, span, ago} from "./dom.js";
import {takeKey, setToken, follow, json} from "./stream.js";
import * as nodes from "./nodes.js";
import {open, leave, refresh, told} from "./detail.js";
import {lent} from "./queue.js";

/** What the server told last, and the resource that is looked at. */
const view = {overview: null, queues: null, line: null, policies: null, resource: "cpu"};
const reached = [roving($("line-table"), "tbody a"), roving($("results"), "a")];
const resourceNumber = () => Math.max(0, (view.overview?.resources || []).indexOf(view.resource));

// Resources are chosen once for all of the page.
function drawResources() {
  const list = view.overview.resources.filter(r => r !== "pods").concat("pods");
  keyed($("resources"), [null, ...list], r => r || "", r => r === null ? h("legend", {class: "out"}, "Resource") :
    h("label", {}, h("input", {type: "radio", name: "resource", value: r, onchange: () => {
      view.resource = r;
      drawQueues();
      nodes.show(view.overview.resources, resourceNumber(), view.overview.namespace);
      told(view);
    }}), h("span", {}, r.replace(/^.*\//, ""))), (e, r) => {
    if (r !== null) e.firstChild.checked = r === view.resource;
  });
}

const sum = counts => Object.values(counts).reduce((a, b) => a + b, 0);

function drawOverview() {
  const o = view.overview;
  text($("cluster"), o.cluster + (o.namespace ? ", namespace " + o.namespace : ""));
  $("try").hidden = !o.try;
  document.title = `${view.line ? view.line.total + " waiting: " : ""}${o.cluster} - Celsius`;
  keyed($("gaps"), o.gaps, g => g.of, () => h("li", {}, h("b"), " ", h("span")), (e, g) => {
    text(e.firstChild, g.of);
    text(e.lastChild, g.why);
  });
  const figures = [["nodes ready", o.nodes - o.notReady, "of " + o.nodes.toLocaleString("en")], ["pods running", o.pods.Running || 0, "of " + sum(o.pods).toLocaleString("en")],
    ["pods waiting", o.pods.Waiting || 0, ""]];
  o.resources.forEach((r, i) => {
    if (r !== "pods" && o.offered[i] > 0) {
      figures.push([r.replace(/^.*\//, "") + " taken" + (o.namespace ? " by " + o.namespace : ""), Math.round(100 * o.used[i] / o.offered[i]) + " %", `${amount(r, o.used[i])} of ${amount(r, o.offered[i])}`]);
    }
  });
  keyed($("figures"), figures, f => f[0], f => h("div", {class: "card"}, h("dt", {}, f[0]), h("dd", {}, h("span"), " ", h("small"))), (e, [, value, of]) => {
    text(e.querySelector("span"), value.toLocaleString("en"));
    text(e.querySelector("small"), of);
  });
  drawResources();
}

// A bar of a queue: what it holds of its own, what it borrowed, and a mark at what it is due.
function queueBar(q, r, most) {
  const allocated = q.allocated[r] || 0, deserved = q.deserved[r] ?? -1, borrowed = lent(q, r);
  const bar = celsius.bar({part: (allocated - borrowed) / most, mark: deserved < 0 ? null : deserved / most,
    label: `${amount(view.resource, allocated)} allocated` + (deserved < 0 ? "" : `, ${amount(view.resource, deserved)} deserved`)});
  const more = h("i", {class: "lent"});
  more.style.left = 100 * (allocated - borrowed) / most + "%";
  more.style.width = 100 * borrowed / most + "%";
  bar.append(more);
  return bar;
}

let tree;
function drawQueues() {
  const {queues, total} = view.queues, r = resourceNumber(), name = view.resource;
  const most = new Map(); // bars are as long as those of siblings are
  for (const q of queues) most.set(q.parent, Math.max(most.get(q.parent) || 1e-9, q.allocated[r] || 0, q.deserved[r] || 0));
  const number = (title, cell) => ({title, cell, number: true, class: title});
  const data = {
    title: `Queues by ${name}`, rows: queues.map(q => ({...q, key: q.name})),
    columns: [
      {title: "queue", cell: q => h("span", {}, h("a", {href: "#queue/" + q.name, tabindex: -1}, q.name), h("span", {class: "tag"}, q.state === "Open" ? "" : q.state))},
      {title: name.replace(/^.*\//, ""), class: "bar-column", cell: q => queueBar(q, r, most.get(q.parent))},
      number("allocated", q => amount(name, q.allocated[r])), number("deserved", q => amount(name, q.deserved[r])),
      number("borrowed", q => lent(q, r) ? amount(name, lent(q, r)) : ""), number("running", q => q.running || ""), number("waiting", q => q.waiting || ""),
    ],
  };
  if (tree) tree.update(data);
  else {
    tree = celsius.tree(data);
    tree.setAttribute("aria-describedby", "queues-key queues-help");
    tree.addEventListener("keydown", event => { // before the tree, which folds by Enter as well as by the arrows
      const row = event.target.closest("tr");
      if (event.key !== "Enter" || event.target.closest("button, a") || !row) return;
      event.preventDefault();
      event.stopPropagation();
      location.hash = "#queue/" + row.dataset.key;
    }, {capture: true});
    $("queue-tree").append(tree);
  }
  $("queue-rest").hidden = total <= queues.length;
  text($("queue-rest"), `${total - queues.length} more queues: search finds them.`);
}

function drawLine() {
  const {jobs, total, reasons} = view.line;
  text($("line-title"), total ? `Waiting jobs: ${total.toLocaleString("en")}` : "No job waits");
  keyed($("reasons"), total > 1 ? reasons.slice(0, 6) : [], r => r.why, r => h("li", {}, h("b"), " ", h("span", {}, r.why)), (e, r) => text(e.firstChild, r.jobs));
  keyed($("line-table").tBodies[0], jobs, j => j.namespace + "/" + (j.group || "job/" + j.name), j => h("tr", {},
    h("th", {scope: "row"}, h("a", {href: `#job/${j.namespace}/${j.name}`, tabindex: -1}, j.name), h("span", {class: "soft small"}, j.namespace)),
    h("td", {"data-label": "queue"}, h("a", {href: "#queue/" + j.queue, tabindex: -1, class: "plain"}, j.queue)), h("td", {class: "n", "data-label": "waits"}),
    h("td", {class: "n", "data-label": "placed"}), h("td", {class: "why"}, h("div", {class: "clamp"}))), (row, j) => {
    row.dataset.since = j.since;
    text(row.cells[2], ago(j.since));
    text(row.cells[3], `${j.placed} of ${Math.max(j.pods, j.min)}`);
    text(row.cells[4].firstChild, j.why || "");
  });
  $("line-table").parentElement.hidden = jobs.length === 0;
  reached[0]();
  $("line-rest").hidden = total <= jobs.length;
  text($("line-rest"), `${(total - jobs.length).toLocaleString("en")} more, which came later: search finds them, and a queue shows those in it.`);
}

const decided = r => r.waits || r.waited || r.evictions || r.errors || r.evaluations;

function drawPolicies() {
  const all = $("rows-all").checked;
  keyed($("policy-list"), view.policies, p => p.name, p => h("details", {class: "card policy", open: p.serves},
    h("summary", {}, h("b", {}, p.name), h("span", {class: "soft"})), h("ul", {class: "says soft small"}),
    h("div", {class: "wide"}, h("table", {}, h("thead", {}, h("tr", {}, h("th", {scope: "col"}, "row"), h("th", {scope: "col"}, "section"),
      ["jobs wait", "waited", "evicted", "evaluations", "a second", "cost", "errors"].map(c => h("th", {scope: "col", class: "n"}, c)))), h("tbody"))),
    h("p", {class: "soft small"})), (e, p) => {
    text(e.querySelector("summary .soft"), `generation ${p.generation}, ${p.serves ? "obeyed" : p.active ? "active" : "not obeyed"}` +
      `${p.mode === "Paused" ? ", paused" : ""}, ${count(p.total, "row")}`);
    keyed(e.querySelector(".says"), p.says, s => s, s => h("li", {}, s), () => {});
    const rows = p.rows.filter(r => all || decided(r)).sort((a, b) => b.waits - a.waits || b.errors - a.errors || b.evictions - a.evictions || b.rate - a.rate);
    keyed(e.querySelector("tbody"), rows, r => [r.site, r.table, r.name].join("/"), r => h("tr", {},
      h("th", {scope: "row"}, `${r.table}/${r.name}`, r.text ? h("code", {class: "expression"}, r.text) : "", h("p", {class: "bad small"})),
      h("td", {"data-label": "section"}, r.site), ["jobs wait", "waited", "evicted", "evaluations", "a second", "cost", "errors"].map(c =>
        h("td", {class: "n", "data-label": c}))), (row, r) => {
      text(row.querySelector(".bad"), r.lastError || "");
      [r.waits || "", r.waited ? span(r.waited) : "", r.evictions || "", r.evaluations ? r.evaluations.toLocaleString("en") : "",
        r.rate ? round(r.rate) : "", r.cost ? (r.cost > 1e9 ? "unbounded" : r.cost.toLocaleString("en")) : "",
        r.errors ? r.errors.toLocaleString("en") + (r.overBudget ? ` (${r.overBudget.toLocaleString("en")} over budget)` : "") : ""]
        .forEach((value, i) => text(row.cells[i + 2], value));
      row.classList.toggle("erred", r.errors > 0);
    });
    e.querySelector(".wide").hidden = rows.length === 0;
    text(e.lastChild, rows.length ? "cost: of one evaluation at most, in CEL's units" : "No row is known to have decided anything.");
  });
  if (!view.policies.length) $("policy-list").replaceChildren(h("p", {class: "soft"}, "There is no SchedulingPolicy: the scheduler obeys the one that comes with Celsius."));
}

// What changed is said now and then, to who does not see it.
let said = null, saidAt = 0;
function news() {
  if (!view.line || Date.now() - saidAt < 10000) return;
  const now = view.line.total;
  if (said !== null && now !== said) text($("news"), `${count(now, "job")} ${now === 1 ? "waits" : "wait"}, ${Math.abs(now - said)} ${now > said ? "more" : "fewer"} than before`);
  said = now;
  saidAt = Date.now();
}

const draw = {overview: drawOverview, queues: drawQueues, line: drawLine, policies: drawPolicies};
const changed = new Set();
let drawing = false;

// All that came is drawn in one frame.
function take(name, data) {
  if (name === "nodes") nodes.take(data);
  else view[name] = data;
  changed.add(name);
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    if (!view.overview) return;
    if (changed.has("overview")) drawOverview();
    if (changed.has("overview") || changed.has("nodes")) nodes.show(view.overview.resources, resourceNumber(), view.overview.namespace);
    for (const [name, f] of Object.entries(draw)) if (name !== "overview" && view[name] && changed.has(name)) f();
    changed.clear();
    news();
    told(view);
  });
}

function state(word) {
  $("live").className = "live " + word;
  text($("live"), {live: "live", locked: "locked", lost: "no connection; it is tried again"}[word]);
}

// Who may look. asking is kept while somebody is asked for a token, and granted ends that.
let asking = null, granted = null;
function refused(why) {
  text($("login-why"), why);
  if (!$("login").open) $("login").showModal();
  asking ||= new Promise(done => { granted = done; });
  return asking;
}
function grant() {
  asking = null;
  granted?.();
  $("login").close();
}
$("login-form").addEventListener("submit", () => {
  setToken($("token").value);
  $("token").value = "";
  grant();
});
$("login").addEventListener("cancel", event => event.preventDefault());
$("login").addEventListener("close", () => { if (asking && !$("login").open) $("login").showModal(); }); // a browser heeds a second Escape all the same

// Search.
let found = 0;
$("search").addEventListener("input", async () => {
  const mine = ++found, asked = $("search").value.trim();
  await new Promise(done => setTimeout(done, 150));
  if (mine !== found) return;
  if (!asked) return hideResults();
  try {
    const result = await json("search", {text: asked});
    if (mine !== found) return;
    const to = f => f.kind === "pod" ? (f.job ? `#job/${f.namespace}/${f.job}` : null) : `#${f.kind}/${f.namespace ? f.namespace + "/" : ""}${f.name}`;
    $("results").replaceChildren(
      h("p", {class: "soft small", role: "status"}, result.total ? `${count(result.total, "object")}${result.total > result.found.length ? `, the best ${result.found.length}` : ""}` : "nothing is called so"),
      ...result.found.map(f => h(to(f) ? "a" : "span", {href: to(f), tabindex: to(f) ? -1 : null}, h("b", {}, f.kind), " ", f.namespace ? f.namespace + "/" + f.name : f.name,
        " ", h("span", {class: "soft small"}, f.says || ""))));
    $("results").hidden = false;
    reached[1]();
  } catch (error) {
    $("results").replaceChildren(h("p", {class: "bad"}, error.message));
    $("results").hidden = false;
  }
});
function hideResults() {
  $("results").hidden = true;
  $("results").replaceChildren();
}
$("search-form").addEventListener("submit", event => {
  event.preventDefault();
  $("results").querySelector("a")?.click();
});
$("search").addEventListener("keydown", event => {
  if (event.key !== "ArrowDown" || $("results").hidden) return;
  event.preventDefault();
  $("results").querySelector("a")?.focus();
});
$("results").addEventListener("click", event => {
  if (!event.target.closest("a")) return;
  $("search").value = "";
  $("search").focus({preventScroll: true}); // to which the reader comes back
  hideResults();
});
$("search-form").addEventListener("focusout", event => { if (event.relatedTarget && !$("search-form").contains(event.relatedTarget)) hideResults(); });

addEventListener("keydown", event => {
  const typing = event.target.closest("input:not([type=radio], [type=checkbox]), textarea, select");
  if (event.key === "/" && !typing && !$("login").open) {
    event.preventDefault();
    $("search").focus();
    $("search").select();
  } else if (event.key === "Escape" && (!$("results").hidden || event.target === $("search"))) {
    $("search").value = "";
    found++;
    hideResults();
    $("search").focus();
  } else if (event.key === "Escape") leave();
});

$("rows-all").addEventListener("change", () => view.policies && drawPolicies());
addEventListener("hashchange", () => {
  if (takeKey()) grant(); // celsius dashboard was started anew, and its address opened in this tab
  open(view);
});
setInterval(() => {
  for (const row of $("line-table").tBodies[0].rows) text(row.cells[2], ago(row.dataset.since));
  refresh(view);
}, 5000);

takeKey();
open(view);
follow(take, state, refused);
