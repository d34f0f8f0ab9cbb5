// A queue that was opened: what it holds, over time, and who waits in it.
import {$, h, keyed, text, amount, count, ago, clock} from "./dom.js";

/** What a queue holds of a resource beyond what it is due; 0 where nobody says what that is. */
export function lent(q, r) { return (q.deserved[r] ?? -1) < 0 ? 0 : Math.max(0, (q.allocated[r] || 0) - q.deserved[r]); }

/** Writes a list of facts. */
export function facts(id, list) {
  keyed($(id), list.filter(f => f[1] !== "" && f[1] !== undefined), f => f[0], f => h("div", {}, h("dt", {}, f[0]), h("dd")), (e, f) => text(e.lastChild, f[1]));
}

/** Fills the page of a queue from what the server tells of it. */
export function queue(d, view) {
  const q = view.queues?.queues.find(x => x.name === d.name), resources = view.overview?.resources || [], r = Math.max(0, resources.indexOf(view.resource));
  if (q) {
    const told = list => list[r] < 0 ? "" : amount(view.resource, list[r]);
    facts("queue-facts", [["state", q.state], ["below", q.parent || ""], ["weight", q.weight], [view.resource + " allocated", told(q.allocated)],
      ["deserved", told(q.deserved)], ["borrowed", amount(view.resource, lent(q, r))], ["guarantee", told(q.guarantee)], ["capability", told(q.capability)]]);
  }
  curve($("curve"), d, r, view.resource);
  text($("in-line"), d.line.total ? `${count(d.line.total, "job")} ${d.line.total === 1 ? "waits" : "wait"} in it, the oldest first` : "No job waits in it");
  $("queue-line").hidden = !d.line.total;
  keyed($("queue-line").tBodies[0], d.line.jobs, j => j.namespace + "/" + (j.group || "job/" + j.name), j => h("tr", {},
    h("th", {scope: "row"}, h("a", {href: `#job/${j.namespace}/${j.name}`}, `${j.namespace}/${j.name}`)), h("td", {class: "n"}), h("td", {class: "why"})), (row, j) => {
    text(row.cells[1], ago(j.since));
    text(row.cells[2], j.why || "");
  });
}

// curve shows the last hour of a queue.
function curve(parent, d, r, resource) {
  const allocated = d.allocated[r] || [], deserved = d.deserved[r] || [], times = d.times.slice(d.times.length - allocated.length);
  if (allocated.length < 2) return parent.replaceChildren(h("p", {class: "soft small"}, "Its curve begins in some seconds."));
  const points = of => of.map((v, i) => [times[i], v]).filter(p => p[1] >= 0);
  const lines = [{name: "allocated", kind: "allocated", points: points(allocated)}];
  if (deserved.some(v => v >= 0)) {
    lines.push({name: "deserved", kind: "deserved", points: points(deserved)},
      {name: "borrowed", kind: "borrowed", points: points(allocated.map((v, i) => deserved[i] < 0 ? -1 : Math.max(0, v - deserved[i])))});
  }
  const data = {title: resource, note: `the last ${Math.max(1, Math.round((times.at(-1) - times[0]) / 60))} min`, from: times[0], to: times.at(-1), lines,
    time: t => clock(t * 1000), amount: v => amount(resource, v)};
  if (parent.firstChild?.update) parent.firstChild.update(data);
  else parent.replaceChildren(celsius.curve(data));
}
