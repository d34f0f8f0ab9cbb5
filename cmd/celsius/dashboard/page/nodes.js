// Nodes, as a heat map and as a table.
import {$, h, keyed, text, count} from "./dom.js";

const noneOffered = 255, ready = 1, cordoned = 2;
let names = [], columns = [], flags = new Uint8Array(), resources = [], chosen = 0, cells = [], map, sorted = 0, only;

/** Node is a cell of the map, which says what there is of it when it is asked: there may be many. */
class Node {
  constructor(number) { this.number = number; }
  get name() { return names[this.number]; }
  get taken() { return columns[chosen]?.[this.number] ?? noneOffered; }
  get value() { return this.taken === noneOffered ? null : this.taken / 100; }
  get mark() { return !(flags[this.number] & ready); }
  get state() { return this.mark ? "not ready" : flags[this.number] & cordoned ? "cordoned" : "ready"; }
  get text() { return `${this.state}; taken are ` + resources.map((r, c) => this.of(c) === "" ? "" : `${r} ${this.of(c)} %`).filter(Boolean).join(", "); }
  of(column) {
    const taken = columns[column]?.[this.number] ?? noneOffered;
    return taken === noneOffered ? "" : taken;
  }
}

/** Takes in an event of nodes: the columns of all of them, or of those that changed. */
export function take(event) {
  const bytes = Uint8Array.from(atob(event.cells), c => c.charCodeAt(0));
  if (event.names) names = event.names;
  const at = event.at || names.map((_, i) => i), width = at.length ? bytes.length / at.length : 0;
  if (!event.at) {
    columns = Array.from({length: width - 1}, () => new Uint8Array(names.length));
    flags = new Uint8Array(names.length);
  }
  at.forEach((node, i) => {
    columns.forEach((column, c) => { column[node] = bytes[c * at.length + i]; });
    flags[node] = bytes[(width - 1) * at.length + i];
  });
  if (event.names || $("node-order").value !== "name" && Date.now() - sorted > 5000) arrange();
}

/** Shows what there is of a resource, by its number, and says it where only the pods of a namespace are known. */
export function show(list, number, namespace) {
  const other = number !== chosen;
  resources = list;
  only = namespace;
  chosen = number;
  if (other) arrange();
  const data = {
    title: `Nodes by how much of ${resources[chosen]} is taken`, cells, choose: node => { location.hash = "#node/" + node.name; },
    size: width => Math.max(5, Math.min(18, Math.floor(Math.sqrt(width * 240 / Math.max(cells.length, 1))))),
  };
  if (map) map.update(data);
  else $("heat").append(map = celsius.heat(data));
  const column = columns[chosen] || [], sums = {some: 0, full: 0, idle: 0, broken: 0, cordoned: 0};
  for (let i = 0; i < names.length; i++) {
    if (column[i] !== noneOffered) sums.some++;
    if (column[i] >= 95 && column[i] !== noneOffered) sums.full++;
    if (column[i] === 0) sums.idle++;
    if (!(flags[i] & ready)) sums.broken++;
    else if (flags[i] & cordoned) sums.cordoned++;
  }
  text($("heat-sum"), names.length === 0 ? "There are no nodes." : `${count(sums.some, "node")} ${sums.some === 1 ? "has" : "have"} ${resources[chosen]}: ` +
    `${sums.full} at least 95 % taken, ${sums.idle} idle; ${count(sums.broken, "node")} not ready, ${sums.cordoned} cordoned` + (only ? `; by pods of namespace ${only} alone` : ""));
  if ($("node-list").open) table();
}

// arrange puts the cells in order. Those of a node stay the same, by which the map knows where the reader is.
function arrange() {
  const by = $("node-order").value;
  sorted = Date.now();
  if (cells.length !== names.length) cells = names.map((_, i) => new Node(i));
  const taken = node => node.value ?? -1, first = {name: () => 0, full: (a, b) => taken(b) - taken(a), free: (a, b) => taken(a) - taken(b)}[by];
  cells = cells.toSorted((a, b) => first(a, b) || a.number - b.number);
}

// table shows fifty, those that are not ready first.
function table() {
  $("node-table").tHead.replaceChildren(h("tr", {}, h("th", {scope: "col"}, "node"), h("th", {scope: "col"}, "state"),
    resources.map(r => h("th", {scope: "col", class: "n"}, r + " %"))));
  const shown = [...cells.filter(c => c.mark), ...cells.filter(c => !c.mark)].slice(0, 50);
  keyed($("node-table").tBodies[0], shown, c => c.name, c => h("tr", {}, h("td", {}, h("a", {href: "#node/" + c.name}, c.name)), h("td", {}),
    resources.map(() => h("td", {class: "n"}))), (row, c) => {
    text(row.cells[1], c.state);
    resources.forEach((_, i) => { if (row.cells[i + 2]) text(row.cells[i + 2], c.of(i)); });
  });
}

for (const [id, event] of [["node-order", "change"], ["node-list", "toggle"]]) {
  $(id).addEventListener(event, () => {
    arrange();
    if (map) show(resources, chosen, only);
  });
}
