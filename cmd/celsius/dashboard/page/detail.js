// A job, a queue or a node that was opened: what the address of the page names after #.
import {$, h, keyed, text, amount, count, ago, clock, command} from "./dom.js";
import {json, words} from "./stream.js";
import {facts, queue} from "./queue.js";

// left are the element where the reader was, and what it stands in, from the inside out: a row may be another by the time of coming back.
let shown = "", left = [], asking = null, last = 0, data = null;

/** Opens what the address names. */
export function open(view) {
  const [, kind, rest] = /^#(job|queue|node)\/(.+)$/.exec(location.hash) || [];
  if (kind === undefined) {
    const policy = /^#policy\/(.+)$/.exec(location.hash);
    if (policy) $("policies").focus();
    return close();
  }
  const [namespace, name] = kind === "job" ? rest.split("/").map(decodeURIComponent) : ["", decodeURIComponent(rest)];
  if (shown !== location.hash) {
    const at = document.activeElement;
    if (!shown) left = [at, at?.closest("tr"), at?.closest("section")];
    shown = location.hash;
    data = null;
    $("detail-body").replaceChildren(h("p", {class: "soft"}, "asking"));
  }
  text($("detail-title"), kind === "job" ? `Job ${namespace}/${name}` : `${kind === "queue" ? "Queue" : "Node"} ${name}`);
  $("detail").hidden = false;
  document.body.classList.add("detailed");
  $("detail-title").focus({preventScroll: true});
  $("detail").scrollTop = 0;
  ask(kind, namespace, name, view);
}

function close() {
  if (!shown) return;
  shown = "";
  asking?.abort();
  $("detail").hidden = true;
  document.body.classList.remove("detailed");
  left.find(e => e?.isConnected)?.focus({preventScroll: true});
}

/** Closes what is open, and leaves the page where it is. */
export function leave() {
  if (!shown) return;
  history.pushState(null, "", location.pathname + location.search); // as "#" would scroll to the top
  close();
}

async function ask(kind, namespace, name, view) {
  asking?.abort();
  asking = new AbortController();
  const mine = asking, at = shown;
  last = Date.now();
  try {
    const answer = await json(kind, kind === "job" ? {namespace, name} : {name}, mine.signal);
    if (at !== shown) return;
    const first = !data;
    data = {kind, namespace, name, answer};
    if (first) $("detail-body").replaceChildren(...skeleton(kind, namespace, name, answer));
    fill(view);
  } catch (error) {
    if (error.name === "AbortError" || at !== shown) return;
    if (!data) $("detail-body").replaceChildren(h("p", {class: "bad"}, error.message));
  } finally {
    if (asking === mine) asking = null;
  }
}

/** Asks again for what is open. */
export function refresh(view) { told(view, 4000); }

/** Asks again for what is open, as something has changed: every 2 s at most, and not while an answer is awaited that may still come. */
export function told(view, least = 2000) {
  if (!shown || !data || document.hidden || Date.now() - last < (asking ? 30000 : least)) return;
  ask(data.kind, data.namespace, data.name, view);
}

$("detail-close").addEventListener("click", leave);

function skeleton(kind, namespace, name, answer) {
  const commands = h("details", {open: true}, h("summary", {}, "The same by command"), h("ul", {class: "commands"}, answer.commands.map(command)));
  const why = h("pre", {class: "explain", hidden: true});
  const explain = h("button", {type: "button", onclick: async () => {
    why.hidden = false;
    text(why, "asking the scheduler");
    try {
      text(why, await words("explain", {kind, namespace, name}));
    } catch (error) {
      text(why, error.message);
    }
  }}, kind === "node" ? "Who could go there, and why not" : kind === "queue" ? "Its order, as the scheduler sees it" : "Why, in depth, from the scheduler");
  const parts = {
    job: [h("p", {id: "job-says"}), h("dl", {class: "facts", id: "job-facts"}), explain, why, h("h3", {}, "Story"), h("ol", {class: "story", id: "story"}),
      h("ul", {class: "bad small", id: "story-lacks"}), h("h3", {id: "pods-title"}), h("div", {class: "wide"}, table("pods", ["pod", "phase", "node", "why"]))],
    queue: [h("dl", {class: "facts", id: "queue-facts"}), h("div", {id: "curve"}), explain, why, h("h3", {id: "in-line"}),
      h("div", {class: "wide"}, table("queue-line", ["job", "waits", "why"]))],
    node: [h("p", {id: "node-says"}), h("div", {class: "wide"}, table("node-use", ["resource", "taken", "of", "%"])), explain, why, h("h3", {id: "pods-title"}),
      h("div", {class: "wide"}, table("pods", ["pod", "job", "phase", "why"]))],
  };
  return [...parts[kind], commands];
}

function table(id, columns) {
  return h("table", {id}, h("thead", {}, h("tr", {}, columns.map(c => h("th", {scope: "col"}, c)))), h("tbody"));
}

function fill(view) {
  if (data.kind === "job") job(data.answer);
  if (data.kind === "queue") queue(data.answer, view);
  if (data.kind === "node") node(data.answer, view);
}

function job(s) {
  text($("job-says"), s.job.why ? "Waits: " + s.job.why : "");
  facts("job-facts", [["phase", s.job.phase], ["queue", s.job.queue], ["age", ago(s.job.since)], ["pods", Object.entries(s.counts).map(([p, n]) => `${n} ${p}`).join(", ") || "none"],
    ["start together", s.job.min], ["priority", s.job.priority], ["restarts", s.retries || ""]]);
  let day = "";
  const entries = s.entries.map((e, i) => ({...e, key: [e.at, e.what, i].join()}));
  keyed($("story"), entries, e => e.key, e => h("li", {}, h("time", {datetime: e.at}), h("span", {class: "what"}, e.what), h("span", {class: "says"})), (li, e) => {
    const date = new Date(e.at).toLocaleDateString("en-GB", {day: "numeric", month: "short"});
    text(li.firstChild, (date === day ? "" : date + " ") + clock(e.at));
    day = date;
    text(li.lastChild, e.says || "");
    li.classList.toggle("bad", !!e.bad);
  });
  keyed($("story-lacks"), s.lacks, l => l, l => h("li", {}, l), () => {});
  text($("pods-title"), count(s.total, "pod") + (s.total > s.pods.length ? `, of which ${s.pods.length} are listed` : ""));
  keyed($("pods").tBodies[0], s.pods, p => p.name, p => h("tr", {}, h("th", {scope: "row"}, p.name), h("td"), h("td", {}, h("a")), h("td", {class: "why"})), (row, p) => {
    text(row.cells[1], p.phase);
    const link = row.cells[2].firstChild;
    text(link, p.node || "");
    if (p.node) link.href = "#node/" + p.node;
    text(row.cells[3], p.says || "");
  });
}

function node(d, view) {
  text($("node-says"), (d.ready ? d.cordoned ? "Ready, and cordoned: nothing new goes there." : "Ready." : "Not ready: " + (d.why || "")) +
    (d.taints?.length ? " Taints: " + d.taints.join(", ") : "") +
    (view.overview?.namespace ? ` What is taken is told of pods of namespace ${view.overview.namespace} alone.` : ""));
  const list = (view.overview?.resources || []).map((r, i) => [r, d.used[i], d.offers[i]]).filter(x => x[1] || x[2]);
  keyed($("node-use").tBodies[0], list, x => x[0], x => h("tr", {}, h("th", {scope: "row"}, x[0]), h("td", {class: "n"}), h("td", {class: "n"}), h("td", {class: "n"})), (row, [r, used, of]) => {
    [amount(r, used), amount(r, of), of ? Math.round(100 * used / of) : ""].forEach((value, i) => text(row.cells[i + 1], value));
  });
  text($("pods-title"), count(d.total, "pod") + " on it" + (d.total > d.pods.length ? `, of which ${d.pods.length} are listed` : ""));
  keyed($("pods").tBodies[0], d.pods, p => p.namespace + "/" + p.name, p => h("tr", {}, h("th", {scope: "row"}, `${p.namespace}/${p.name}`), h("td", {}, p.job ?
    h("a", {href: `#job/${p.namespace}/${p.job}`}, p.job) : ""), h("td"), h("td", {class: "why"})), (row, p) => {
    text(row.cells[2], p.phase);
    text(row.cells[3], p.says || "");
  });
}
