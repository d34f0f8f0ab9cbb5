// Nodes as a heat map: a canvas, as ten thousand elements would stall the page. Keys go from cell to cell, and a table says the same.
import {$, h, keyed, text, count} from "./dom.js";

const noneOffered = 255, ready = 1, cordoned = 2;
let names = [], columns = [], flags = new Uint8Array(), resources = [], chosen = 0;
let order = [], at = 0, cell = 12, across = 1, sorted = 0;
const canvas = $("heat"), colours = {};

function decode(base64) {
  return Uint8Array.from(atob(base64), c => c.charCodeAt(0));
}

/** Takes in an event of nodes. */
export function take(event) {
  const cells = decode(event.cells);
  if (event.names) names = event.names;
  const length = event.at ? event.at.length : names.length, width = length ? cells.length / length : 0;
  if (!event.at) {
    columns = [];
    for (let c = 0; c + 1 < width; c++) columns.push(cells.slice(c * length, (c + 1) * length));
    flags = cells.slice((width - 1) * length);
  } else {
    event.at.forEach((node, i) => {
      columns.forEach((column, c) => { column[node] = cells[c * length + i]; });
      flags[node] = cells[(width - 1) * length + i];
    });
  }
  const again = $("node-order").value !== "name" && Date.now() - sorted > 5000;
  if (event.names || again) arrange();
  else if (event.at && order.length) paint(event.at);
  else draw();
  tell();
}

/** Shows another resource. */
export function show(list, number) {
  if (chosen === number && resources.join() === list.join()) return;
  resources = list;
  chosen = number;
  arrange();
  tell();
}

function arrange() {
  const by = $("node-order").value, held = order[at], column = columns[chosen] || [];
  sorted = Date.now();
  order = names.map((_, i) => i);
  const value = i => column[i] === noneOffered ? -1 : column[i];
  if (by === "full") order.sort((a, b) => value(b) - value(a) || a - b);
  if (by === "free") order.sort((a, b) => value(a) - value(b) || a - b);
  at = Math.max(0, order.indexOf(held));
  layout();
}

function layout() {
  const width = canvas.parentElement.clientWidth, ratio = Math.min(devicePixelRatio || 1, 2);
  if (!width) return;
  // As large as 16 rows of cells need, at most 18 pixels and at least 4.
  cell = Math.max(4, Math.min(18, Math.floor(Math.sqrt(width * 260 / Math.max(order.length, 1)))));
  across = Math.max(1, Math.floor(width / cell));
  const rows = Math.max(1, Math.ceil(order.length / across));
  canvas.width = across * cell * ratio;
  canvas.height = rows * cell * ratio;
  canvas.style.width = across * cell + "px";
  canvas.style.height = rows * cell + "px";
  canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
  draw();
}

/** Reads the colours of the theme. */
export function recolour() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["heat-0", "heat-1", "heat-2", "heat-3", "heat-4", "over", "none", "bad", "ink", "card"]) {
    colours[name] = style.getPropertyValue("--" + name).trim();
  }
  draw();
}

function mix(percent) {
  const steps = 4, place = Math.min(percent, 100) / 100 * steps, low = Math.min(Math.floor(place), steps - 1);
  const [a, b] = [colours["heat-" + low], colours["heat-" + (low + 1)]].map(c => [1, 3, 5].map(i => parseInt(c.slice(i, i + 2), 16)));
  return `rgb(${a.map((v, i) => Math.round(v + (b[i] - v) * (place - low))).join(" ")})`;
}

const mixed = new Map();
function colour(node) {
  const value = (columns[chosen] || [])[node];
  if (value === undefined || value === noneOffered) return colours.none;
  if (value > 100) return colours.over;
  if (!mixed.has(value)) mixed.set(value, mix(value));
  return mixed.get(value);
}

function one(context, place) {
  const node = order[place], x = place % across * cell, y = Math.floor(place / across) * cell, gap = cell > 6 ? 1 : .5;
  context.clearRect(x, y, cell, cell);
  context.fillStyle = colour(node);
  context.fillRect(x, y, cell - gap, cell - gap);
  if (!(flags[node] & ready)) { // a cross: told by form as well as by colour
    context.strokeStyle = colours.bad;
    context.lineWidth = cell > 8 ? 2 : 1;
    context.beginPath();
    context.moveTo(x + 1, y + 1);
    context.lineTo(x + cell - gap - 1, y + cell - gap - 1);
    context.moveTo(x + cell - gap - 1, y + 1);
    context.lineTo(x + 1, y + cell - gap - 1);
    context.stroke();
  } else if (flags[node] & cordoned) {
    context.strokeStyle = colours.ink;
    context.lineWidth = 1;
    context.strokeRect(x + .5, y + .5, cell - gap - 1, cell - gap - 1);
  }
}

function mark(context) {
  if (document.activeElement !== canvas || !order.length) return;
  context.strokeStyle = colours.ink;
  context.lineWidth = 2;
  context.strokeRect(at % across * cell - 1, Math.floor(at / across) * cell - 1, cell + 1, cell + 1);
}

let frame = 0;
function draw() {
  mixed.clear();
  if (frame || !colours.none) return;
  frame = requestAnimationFrame(() => {
    frame = 0;
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, canvas.width, canvas.height);
    for (let i = 0; i < order.length; i++) one(context, i);
    mark(context);
  });
}

// paint draws some nodes anew.
function paint(nodes) {
  if ($("node-order").value !== "name") return draw();
  if (frame) return;
  const context = canvas.getContext("2d");
  for (const node of nodes) one(context, node);
  mark(context);
}

function describe(node) {
  const parts = resources.map((r, c) => (columns[c] || [])[node] === noneOffered ? null : `${r} ${(columns[c] || [])[node]} %`).filter(Boolean);
  const state = !(flags[node] & ready) ? "not ready" : flags[node] & cordoned ? "cordoned" : "ready";
  return `${names[node]}: ${state}; taken are ${parts.join(", ")}`;
}

function tell() {
  const column = columns[chosen] || [], some = names.map((_, i) => i).filter(i => column[i] !== noneOffered);
  const full = some.filter(i => column[i] >= 95).length, idle = some.filter(i => column[i] === 0).length;
  text($("heat-sum"), names.length === 0 ? "There are no nodes." :
    `${count(some.length, "node")} ${some.length === 1 ? "has" : "have"} ${resources[chosen] || "it"}: ${full} at least 95 % taken, ${idle} idle; ` +
    `${count(flags.reduce((n, f) => n + !(f & ready), 0), "node")} not ready, ${flags.reduce((n, f) => n + !!(f & cordoned), 0)} cordoned`);
  canvas.setAttribute("aria-label", `Heat map of ${count(names.length, "node")} by how much of ${resources[chosen] || "them"} is taken`);
  if (document.activeElement === canvas && order.length) text($("heat-told"), describe(order[at]));
  if ($("node-list").open) table();
}

function table() {
  const head = $("node-table").tHead;
  head.replaceChildren(h("tr", {}, h("th", {scope: "col"}, "node"), h("th", {scope: "col"}, "state"),
    resources.map(r => h("th", {scope: "col", class: "n"}, r + " %"))));
  const worst = order.filter(i => !(flags[i] & ready)), rest = order.filter(i => flags[i] & ready);
  const shown = [...worst, ...rest].slice(0, 50);
  keyed($("node-table").tBodies[0], shown, i => names[i], i => h("tr", {}, h("td", {}, h("a", {href: "#node/" + names[i]}, names[i])), h("td", {}),
    resources.map(() => h("td", {class: "n"}))), (row, i) => {
    text(row.cells[1], !(flags[i] & ready) ? "not ready" : flags[i] & cordoned ? "cordoned" : "ready");
    resources.forEach((_, c) => { if (row.cells[c + 2]) text(row.cells[c + 2], columns[c][i] === noneOffered ? "–" : columns[c][i]); });
  });
}

function go(place) {
  if (!order.length) return;
  at = Math.max(0, Math.min(order.length - 1, place));
  text($("heat-told"), describe(order[at]));
  draw();
}

canvas.addEventListener("keydown", event => {
  const to = {ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at + across, ArrowUp: at - across, Home: 0, End: order.length - 1,
    PageDown: at + 10 * across, PageUp: at - 10 * across}[event.key];
  if (to !== undefined) {
    event.preventDefault();
    go(to);
  } else if (event.key === "Enter" && order.length) location.hash = "#node/" + names[order[at]];
});
canvas.addEventListener("focus", () => go(at));
canvas.addEventListener("blur", draw);
const under = event => {
  const box = canvas.getBoundingClientRect();
  return Math.floor((event.clientY - box.top) / cell) * across + Math.floor((event.clientX - box.left) / cell);
};
canvas.addEventListener("mousemove", event => {
  const place = under(event);
  if (order[place] !== undefined) text($("heat-told"), describe(order[place]));
});
canvas.addEventListener("click", event => {
  const place = under(event);
  if (order[place] === undefined) return;
  go(place);
  location.hash = "#node/" + names[order[place]];
});
$("node-order").addEventListener("change", () => { arrange(); tell(); });
$("node-list").addEventListener("toggle", tell);
let wide = 0;
new ResizeObserver(() => {
  if (canvas.parentElement.clientWidth === wide) return;
  wide = canvas.parentElement.clientWidth;
  layout();
}).observe(canvas.parentElement);
