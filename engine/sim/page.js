// The page of a report. It shows what the element #data holds, on the components of engine/page.
(() => {
  const { make, bar, curve, heat, tree, list, state } = celsius;
  const data = JSON.parse(document.getElementById("data").textContent);
  for (const list of ["cycles", "figures", "queues", "nodes", "use", "pods", "jobs", "lines", "more"]) data[list] ??= [];
  const one = (s, e = document) => e.querySelector(s), all = (s, e = document) => [...e.querySelectorAll(s)];
  const text = (i) => data.texts[i];
  const main = one("main"), field = one("#search");
  const short = (name) => name.replace(/^default\//, "");
  const searched = []; // what has a method search

  // lasted is a duration in words, 1h2m3s.
  function lasted(seconds) {
    let s = Math.round(seconds * 1000) / 1000;
    if (s < 0) return "-" + lasted(-s);
    const h = Math.floor(s / 3600), m = Math.floor(s % 3600 / 60);
    s = Math.round((s % 60) * 1000) / 1000;
    return (h ? h + "h" : "") + (m || h && s ? m + "m" : "") + (s || !h && !m ? s + "s" : "");
  }
  const count = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;

  // amount is an amount in words, of bytes with a unit.
  function amount(v, bytes) {
    let unit = "";
    if (bytes) for (const u of ["Ki", "Mi", "Gi", "Ti", "Pi"]) { if (v < 1024) break; v /= 1024; unit = u; }
    return String(Math.round(v * 100) / 100) + unit;
  }

  // range is what pods of one job are called together: worker-[0-2].
  function range(names) {
    if (names.length === 1) return names[0];
    const cut = names.map((n) => /^(.*-)(0|[1-9]\d*)$/.exec(n));
    if (cut.every((c) => c && c[1] === cut[0][1])) {
      const numbers = cut.map((c) => Number(c[2])).sort((a, b) => a - b);
      const parts = [];
      for (const n of numbers) {
        const last = parts[parts.length - 1];
        if (last && n <= last[1] + 1) last[1] = n; else parts.push([n, n]);
      }
      if (parts.length <= 4) return `${cut[0][1]}[${parts.map(([a, b]) => a === b ? a : a + "-" + b).join(",")}]`;
    }
    return `${names[0]} and ${names.length - 1} more`;
  }

  const pods = data.pods.map(([pod, job, queue, node, gpus, asks, outcome, size, submitted, bound, ended, evicted, evictedFor]) => ({
    pod: text(pod), job: text(job), queue: text(queue), node: text(node), gpus: text(gpus), asks: text(asks), outcome: text(outcome), size,
    submitted, bound, ended, evicted, evictedFor: evictedFor === undefined ? "" : text(evictedFor),
  }));
  const jobOf = new Map(pods.map((p) => [p.pod, p.job]));
  const classes = new Map(data.queues.map((q) => [q.name, q.class]));
  const colour = (queue) => classes.get(queue) || "other";
  const dot = (queue) => make("span", {}, make("span", { class: colour(queue) }, make("i", { class: "dot" })), queue);

  // section adds one, with a link to it.
  function section(id, title, note, ...children) {
    one("#sections").append(make("a", { href: "#" + id }, title));
    const s = make("section", { id }, make("div", { class: "title" }, make("h2", {}, title), make("span", { class: "soft small" }, note)), ...children);
    main.append(s);
    return s;
  }

  for (const f of data.figures) {
    one("#figures").append(make("div", { class: "card" }, make("dt", {}, f.label), make("dd", {}, f.value, " ", make("small", {}, f.note || ""))));
  }

  // Use over time: of the cluster, and of a resource by queue.
  const grain = [.001, .01, .1, 1, 60].findLast((g) => g <= data.span / 400) || .001; // of times that are read
  function useCurve(u) {
    const kind = u.queue ? "allocated" : "use", lines = [];
    lines.push({ name: kind === "use" ? "in use" : "allocated", kind, points: u.points.map(([t, used]) => [t, used]) });
    if (u.queue) {
      const deserved = u.points.filter((p) => p.length > 3);
      if (deserved.length) lines.push({ name: "deserved", kind: "deserved", points: deserved.map((p) => [p[0], p[3]]) });
      if (deserved.some((p) => p[1] > p[3])) lines.push({ name: "borrowed", kind: "borrowed", points: deserved.map((p) => [p[0], Math.max(p[1] - p[3], 0)]) });
    } else {
      lines.push({ name: "total", kind: "total", points: u.points.map((p) => [p[0], p[2]]) });
      lines.push({ name: "mean", kind: "mean", points: [[0, mean(u)]] });
    }
    return curve({
      title: u.queue || u.resource, note: u.note, from: 0, to: data.span, lines, colour: u.queue ? colour(u.queue) : "",
      time: (t) => "+" + lasted(Math.round(t / grain) * grain), amount: (v) => amount(v, u.bytes),
    });
  }
  function mean(u) {
    return u.points.reduce((sum, p, i) => sum + p[1] * ((i + 1 < u.points.length ? u.points[i + 1][0] : data.span) - p[0]), 0) / data.span;
  }
  function drawUse() {
    const ofCluster = data.use.filter((u) => !u.queue && u.resource !== "pods");
    const ofQueues = data.use.filter((u) => u.queue && u.queue !== "root");
    const resources = [...new Set(ofQueues.map((u) => u.resource))];
    const queues = make("div", { class: "curves", id: "use-queues" });
    const choice = make("select", { id: "resource", aria: { label: "Resource" } }, ...resources.map((r) => make("option", {}, r)));
    const draw = () => queues.replaceChildren(...ofQueues.filter((u) => u.resource === choice.value).map(useCurve));
    choice.addEventListener("change", draw);
    draw();
    section("use", "Use", "over time; point at a curve, or go through it with Tab and the arrow keys",
      make("div", { class: "curves", id: "use-cluster" }, ...ofCluster.map(useCurve)),
      resources.length > 0 && make("div", { class: "controls by-queue" }, make("h3", {}, "By queue"), choice), queues);
  }

  // The chart of bars: a bar is the pods of a job that have in common when they came, began and ended, and how; and, by node, where.
  const nowhere = "nowhere yet";
  const end = (p) => p.ended ?? data.span;
  function title(b) {
    const p = b.pods[0], names = range(b.pods.map((x) => x.pod)), n = b.pods.length;
    const nodes = new Set(b.pods.map((x) => x.node).filter(Boolean));
    let out = n > 1 ? `${names}, ${n} pods` : names;
    if (!b.queued && nodes.size === 1) out += ` on ${p.node}`; else if (!b.queued && nodes.size) out += ` on ${nodes.size} nodes`;
    if (n === 1 && p.gpus) out += ` gpu ${p.gpus}`;
    if (p.queue) out += `, queue ${p.queue}`;
    if (p.asks) out += `, ${n > 1 ? "each " : ""}${p.asks}`;
    if (b.pods.some((x) => x.bound === null && x.ended === null)) {
      const open = b.pods.filter((x) => x.bound === null && x.ended === null).length;
      return `${out}: ${open < n ? `${open} of them wait` : n > 1 ? "wait" : "waits"} since ${lasted(p.submitted)}, ${nowhere}`;
    }
    if (p.bound === null) return `${out}: waited since ${lasted(p.submitted)}, ${p.outcome.toLowerCase()} at ${lasted(p.ended)}`;
    if (b.queued) return `${out}: ` + (b.pods.some((x) => (x.bound ?? x.ended) !== b.to) ? `waited from ${lasted(b.from)}, the last until ${lasted(b.to)}`
      : `waited ${lasted(b.to - b.from)}, from ${lasted(b.from)} to ${lasted(b.to)}`);
    out += `: waited ${lasted(p.bound - p.submitted)}, bound at ${lasted(p.bound)}`;
    if (p.evicted !== undefined) out += `, evicted at ${lasted(p.evicted)} for ${p.evictedFor}`;
    if (p.ended === null) return out + (p.evicted === undefined ? ", runs on" : ", about to go");
    return out + (p.outcome === "Evicted" ? ", gone at " : `, ${p.outcome.toLowerCase()} at `) + lasted(p.ended);
  }
  // grouped gives those that ran, or the waits of pods of a job that came together, which last until the last of them is bound.
  function grouped(list, queued, byNode) {
    const groups = new Map();
    for (const p of list) {
      const from = queued ? p.submitted : p.bound, to = queued ? p.bound ?? end(p) : end(p);
      const key = [p.job || p.pod, from, ...(queued ? [] : [byNode ? p.node : "", to, p.outcome, p.size, p.evictedFor])].join("\n");
      if (!groups.has(key)) groups.set(key, { from: Math.max(from, 0), to, pods: [], queued, size: 0, job: p.job });
      const g = groups.get(key);
      g.pods.push(p);
      g.to = Math.max(g.to, to);
      g.size += p.size;
    }
    return [...groups.values()];
  }
  // packed gives each bar a height by its size and a place where it covers no other, and tells how high all are.
  function packed(bars, scale, least) {
    bars.sort((a, b) => a.from - b.from || b.size - a.size);
    let running = [], height = 0;
    for (const b of bars) {
      b.height = Math.max(b.size * scale, least);
      running = running.filter((r) => r.to > b.from);
      let top = 0;
      for (const r of running) { if (r.top >= top + b.height + 1) break; top = Math.max(top, r.top + r.height + 1); }
      b.top = top;
      height = Math.max(height, top + b.height);
      running.push(b);
      running.sort((x, y) => x.top - y.top);
    }
    return height;
  }
  // most is the most that the sizes of bars come to at one time.
  function most(bars) {
    const changes = bars.flatMap((b) => [[b.from, b.size], [b.to, -b.size]]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    let now = 0, top = 0;
    for (const [, by] of changes) top = Math.max(top, now += by);
    return top;
  }
  function ticks() {
    const steps = [.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800];
    let step = steps.find((s) => data.span / s <= 6);
    if (!step) for (step = 604800; data.span / step > 6;) step *= 2;
    return { step, at: Array.from({ length: Math.floor(data.span / step) + 1 }, (_, i) => i * step) };
  }
  function lane(name, key, bars, scale, least) {
    const height = packed(bars, scale, least), t = ticks(), percent = (x) => 100 * x / data.span;
    const track = make("div", { class: "track", style: { height: Math.max(height, 16) + 6 + "px", "--tick": percent(t.step) + "%" } });
    for (const b of bars) {
      const p = b.pods[0], names = b.pods.map((x) => x.pod);
      const e = make("button", {
        class: ["bar", colour(p.queue), b.queued ? "queued" : p.outcome, !b.queued && p.ended === null ? "open" : "", b.height < 11 ? "thin" : ""].join(" "),
        tabIndex: -1, title: title(b), data: { pod: p.pod, count: names.length, queue: p.queue }, aria: { label: title(b) },
        style: { left: percent(b.from) + "%", width: percent(b.to - b.from) + "%", top: 3 + b.top + "px", height: b.height + "px" },
      }, (p.outcome === "Failed" && !b.queued ? "\u2715 " : "") + short(range(names)));
      b.search = [...names, p.job, p.queue, p.node || nowhere, b.queued ? "waiting " + nowhere : p.outcome].join(" ").toLowerCase();
      e.of = b;
      track.append(e);
    }
    return make("div", { class: "lane", data: { lane: key } }, make("div", {}, name), track);
  }
  function lanes(view) {
    const t = ticks(), e = make("div", { class: "lanes", data: { lanes: view } });
    e.append(make("div", { class: "axis", aria: { hidden: "true" } }, ...t.at.map((x) => {
      const left = 100 * x / data.span;
      return make("span", { class: left > 98 ? "last" : "", style: { left: left + "%" } }, lasted(x));
    })));
    const waited = pods.filter((p) => (p.bound ?? end(p)) > Math.max(p.submitted, 0));
    const placed = pods.filter((p) => p.bound !== null && end(p) > 0);
    if (view === "nodes") {
      const waits = grouped(waited, true, false);
      if (waits.length) e.append(lane(nowhere, nowhere, waits, Math.min(64, 200 / (most(waits) || 1)), 4));
      const by = Map.groupBy(placed, (p) => p.node), names = [...data.nodes.map((n) => n.node)];
      for (const name of by.keys()) if (!names.includes(name)) names.push(name);
      const scale = names.length > 30 ? 40 : 64;
      for (const name of names) e.append(lane(name, name, grouped(by.get(name) || [], false, true), scale, 4));
      return e;
    }
    const by = Map.groupBy(pods.filter((p) => p.job && (p.ended === null || p.ended > 0)), (p) => p.job), rows = [], late = new Set(waited);
    for (const [job, list] of by) {
      rows.push([job, [...grouped(list.filter((p) => late.has(p)), true, false), ...grouped(list.filter((p) => p.bound !== null), false, false)]]);
    }
    const scale = Math.min(64, 120 / (Math.max(...rows.map(([, bars]) => most(bars))) || 1));
    for (const [job, bars] of rows) e.append(lane(short(job), job, bars, scale, 5));
    return e;
  }
  function detail(b) {
    const out = [make("p", {}, title(b))];
    if (b.pods.length > 1) {
      out.push(make("details", {}, make("summary", {}, count(b.pods.length, "pod")),
        make("ul", {}, ...b.pods.map((p) => make("li", {}, p.pod + (p.node && !b.queued ? ` on ${p.node}${p.gpus ? " gpu " + p.gpus : ""}` : ""))))));
    }
    one("#detail").replaceChildren(...out);
  }
  function walk(e) { // by the arrow keys, from bar to bar
    const bars = all(".bar", e), laneOf = (b) => b.closest(".lane");
    if (bars.length) bars[0].tabIndex = 0;
    e.addEventListener("keydown", (ev) => {
      const at = bars.indexOf(document.activeElement);
      if (at < 0) return;
      const here = bars[at], shown = (b) => !laneOf(b).hidden, elsewhere = (b) => laneOf(b) !== laneOf(here) && shown(b);
      let to;
      if (ev.key === "ArrowRight") to = bars.slice(at + 1).find(shown);
      else if (ev.key === "ArrowLeft") to = bars.slice(0, at).reverse().find(shown);
      else if (ev.key === "ArrowDown") to = bars.slice(at + 1).find(elsewhere);
      else if (ev.key === "ArrowUp") { const last = bars.slice(0, at).reverse().find(elsewhere); to = last && bars.find((b) => laneOf(b) === laneOf(last)); }
      else return;
      ev.preventDefault();
      if (to) { here.tabIndex = -1; to.tabIndex = 0; to.focus(); }
    });
    let told;
    const tell = (ev) => { const b = ev.target.closest(".bar"); if (b && b !== told) { told = b; detail(b.of); } };
    for (const kind of ["focusin", "click", "pointerover"]) e.addEventListener(kind, tell);
  }
  let filterBars = () => {};
  function drawTime() {
    const views = {}, card = make("div", { class: "card chart" }), queues = new Set(pods.map((p) => p.queue));
    const buttons = [["nodes", "By node"], ["jobs", "By job"]].map(([view, name]) => make("button", {
      class: "chip", data: { view }, aria: { pressed: view === "nodes" }, on: { click: () => show(view) },
    }, name));
    const sign = (kind, word) => make("span", {}, make("span", { class: "bar swatch " + kind }), word);
    section("time", "Time", "A bar is the pods of a job that fared alike, as high as what they use; the most that a node has is the height of a lane.",
      make("div", { class: "controls", attr: { role: "group" }, aria: { label: "Bars by" } }, ...buttons,
        make("div", { class: "legend" }, ...data.queues.filter((q) => queues.has(q.name)).map((q) => dot(q.name)),
          pods.some((p) => !p.job) && make("span", { class: "other" }, make("i", { class: "dot" }), "other schedulers"),
          sign("queued", "waits"), pods.some((p) => p.outcome === "Failed") && sign("Failed", "\u2715 failed"),
          pods.some((p) => p.outcome === "Evicted" || p.outcome === "Deleted") && sign("Evicted", "evicted or deleted"))), card);
    const told = make("div", { id: "detail", class: "soft", attr: { role: "status" } }, "Choose a bar, or reach the chart by Tab and go through it with the arrow keys.");
    filterBars = (words, queue) => {
      const lower = words.toLowerCase().split(/\s+/).filter(Boolean), fits = (b) => lower.every((w) => b.search.includes(w));
      for (const l of all(".lane", card)) {
        let any = lower.length === 0 || lower.every((w) => l.dataset.lane.toLowerCase().includes(w));
        for (const e of all(".bar", l)) {
          const ok = fits(e.of);
          e.classList.toggle("dim", !ok || queue !== "" && e.dataset.queue !== queue);
          any ||= ok;
        }
        l.hidden = !any;
      }
    };
    function show(view) {
      for (const b of buttons) b.setAttribute("aria-pressed", b.dataset.view === view);
      if (!views[view]) { views[view] = lanes(view); walk(views[view]); told.before(views[view]); filter(); }
      for (const [name, e] of Object.entries(views)) e.hidden = name !== view;
    }
    card.append(told);
    show("nodes");
  }

  // Jobs, by how they fared.
  function drawJobs() {
    const of = Map.groupBy(pods, (p) => p.job), start = Date.parse(data.from);
    const since = (t) => t ? (Date.parse(t) - start) / 1000 : null;
    const told = (t) => t === null ? "" : lasted(t);
    const rows = data.jobs.map((j) => {
      const last = [...new Map((of.get(j.job) || []).map((p) => [p.pod, p])).values()];
      const failed = last.filter((p) => p.outcome === "Failed").length, waiting = last.filter((p) => p.bound === null && p.ended === null).length;
      let kind = "good", word = "succeeded";
      if (failed) [kind, word] = ["bad", `failed, ${failed} of ${count(last.length, "pod")}`];
      else if (!j.finished && (waiting || !last.length)) [kind, word] = ["wait", waiting && waiting < last.length ? `${waiting} of ${count(last.length, "pod")} waiting` : "waiting"];
      else if (!j.finished) [kind, word] = ["plain", "running"];
      else if (last.some((p) => p.outcome !== "Succeeded")) [kind, word] = ["plain", "gone"];
      return { ...j, kind, word, submitted: since(j.submitted), started: since(j.started), finished: since(j.finished) };
    });
    const jobs = list({
      title: "Jobs", rows, key: (r) => r.job, text: (r) => [r.job, r.queue, r.word].join(" "), page: 50,
      attributes: (r) => ({ job: r.job, kind: r.kind }),
      columns: [
        { title: "Job", cell: (r) => short(r.job) }, { title: "State", cell: (r) => state(r.kind, r.word) }, { title: "Queue", cell: (r) => dot(r.queue) },
        { title: "Pods", number: true, cell: (r) => r.pods }, { title: "Submitted", number: true, cell: (r) => told(r.submitted) },
        { title: "Started", number: true, cell: (r) => told(r.started) }, { title: "Finished", number: true, cell: (r) => told(r.finished) },
        { title: "Waited", number: true, cell: (r) => r.started === null ? "" : lasted(r.started - r.submitted) },
        ...(rows.some((r) => r.evicted) ? [{ title: "Evicted", number: true, cell: (r) => r.evicted || "" }] : []),
      ],
    });
    searched.push(jobs);
    section("jobs", "Jobs", "and what became of them", make("div", { class: "card" }, jobs));
  }

  // Decisions, those on pods of a job that say the same as one line.
  const kinds = { admit: "good", bind: "good", evict: "bad", pipeline: "plain", hold: "plain", wait: "wait" };
  const order = ["admit", "bind", "evict", "pipeline", "hold", "wait"];
  let filterLines = () => {};
  function drawDecisions() {
    const rows = data.lines.flatMap(([names, first, last, verb, node, queue, why, below, more], line) => names.map((name, i) => ({
      i: line + "." + i, first, last, verb, what: text(name), node: text(node), queue: text(queue), why: text(why), below, more: text(more),
      job: jobOf.get(text(name)) || text(name), isPod: jobOf.has(text(name)),
    })));
    const timed = data.span > 0 && data.cycles.length > 1 || data.use.length > 0;
    const when = (c) => timed ? "+" + lasted(data.cycles[c].after) : "cycle " + data.cycles[c].number;
    const shown = make("span", { class: "soft small", id: "shown", attr: { role: "status" } });
    // alike is a reason without the node that each pod of a job found before its job's turn was undone.
    const alike = (why) => why.replace(/^found node \S+, rolled back/, "found a node, rolled back");
    function below(r) {
      const m = r.below < 0 ? null : data.more[r.below];
      if (!m) return null;
      const table = (heads, body) => make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((h) => make("th", {}, h)))),
        make("tbody", {}, ...body.map((cells) => make("tr", {}, ...cells.map((c, i) => make("td", { class: i ? "" : "n" }, c))))));
      return make("div", { class: "more" }, m.facts && make("p", {}, m.facts),
        r.last > r.first && make("p", { class: "soft" }, `so for ${r.last - r.first + 1} of the cycles told; as of the last, ${when(r.last)}`),
        m.nodes && table(["Nodes", "Row", "Why"], m.nodes.map(([n, row, why]) => [n, text(row), text(why)])),
        m.scores && table(["Score", "Row"], m.scores.map(([score, row]) => [score, text(row)])));
    }
    const table = list({
      title: "Decisions", rows, page: 200, key: (r) => r.i, below,
      text: (r) => r.searched ??= [r.verb, r.what, r.node, r.queue, r.job, r.why, r.more, ...(r.below < 0 ? [] : (data.more[r.below].nodes || []).flatMap(([, row, why]) => [text(row), text(why)]))].join(" "),
      group: (r) => r.isPod ? [r.first, r.last, r.verb, r.job, r.verb === "wait" || r.verb === "evict" ? alike(r.why) : ""].join("\n") : r.i,
      whole: (rs) => {
        const nodes = [...new Set(rs.map((r) => r.node))], whys = [...new Set(rs.map((r) => r.why))];
        return {
          ...rs[0], what: range(rs.map((r) => r.what)), node: nodes.length > 1 ? count(nodes.length, "node") : nodes[0],
          why: whys.length === 1 ? whys[0] : alike(whys[0]) === alike(whys[1]) ? alike(whys[0]) : `${whys[0]}; and ${count(whys.length - 1, "reason")} like it`,
        };
      },
      attributes: (r) => ({ verb: r.verb, queue: r.queue, what: r.what }),
      columns: [
        { title: "When", cell: (r) => make("span", { class: "n soft" }, when(r.first), r.last > r.first ? ` to ${when(r.last)}` : "") },
        { title: "Decision", cell: (r) => state(kinds[r.verb], r.verb) }, { title: "Pod or job", class: "what", cell: (r) => r.what },
        { title: "Node", class: "where", cell: (r) => r.node }, { title: "Queue", class: "queue", cell: (r) => r.queue ? dot(r.queue) : "" }, { title: "Why", cell: (r) => r.why },
      ],
      counted: (n, of) => { shown.textContent = n === of ? count(n, "decision") : `${n} of ${count(of, "decision")}`; },
    });
    const verbs = order.filter((v) => rows.some((r) => r.verb === v)).map((verb) => make("button", {
      class: "chip", data: { verb }, aria: { pressed: false },
      on: { click: (ev) => { ev.target.setAttribute("aria-pressed", ev.target.getAttribute("aria-pressed") !== "true"); filter(); } },
    }, `${verb} ${rows.filter((r) => r.verb === verb).length}`));
    const queues = make("select", { id: "queue", aria: { label: "Queue" }, on: { change: () => filter() } }, make("option", { value: "" }, "all queues"),
      ...[...new Set(rows.map((r) => r.queue).filter(Boolean))].sort().map((q) => make("option", {}, q)));
    const cycles = make("select", { id: "cycle", aria: { label: "Cycle" }, on: { change: () => filter() } }, make("option", { value: "" }, "all cycles"),
      ...data.cycles.map((c, i) => make("option", { value: i }, `cycle ${c.number}` + (timed ? `, after ${lasted(c.after)}` : ""))));
    filterLines = (words) => {
      const chosen = new Set(verbs.filter((v) => v.getAttribute("aria-pressed") === "true").map((v) => v.dataset.verb));
      const cycle = cycles.value === "" ? null : Number(cycles.value);
      table.filter((r) => (!chosen.size || chosen.has(r.verb)) && (!queues.value || r.queue === queues.value) && (cycle === null || r.first <= cycle && cycle <= r.last));
      table.search(words);
      return queues.value;
    };
    const s = section("decisions", "Decisions", "", make("div", { class: "controls" }, ...verbs, queues, data.cycles.length > 1 && cycles),
      rows.length ? make("div", { class: "card" }, table) : make("p", { class: "none" }, "There was nothing to decide."));
    one(".title", s).append(shown);
  }

  function drawQueues() {
    const queues = tree({
      title: "Queues", rows: data.queues.map((q) => ({ ...q, key: q.name })), text: (q) => q.name + " " + q.state,
      columns: [
        { title: "Queue", cell: (q) => make("span", { class: q.class }, make("i", { class: "dot" }), make("strong", {}, q.name), q.state === "Open" ? "" : make("span", { class: "soft small" }, " " + q.state)) },
        { title: "Share", cell: (q) => q.share === undefined ? "" : make("span", { class: "use-cell" }, bar({ part: q.share, label: `share ${percent(q.share)}`, colour: q.class }), make("span", { class: "count" }, percent(q.share))) },
        { title: "Allocated", cell: (q) => q.allocated || "nothing" }, { title: "Deserved", cell: (q) => q.deserved || "" }, { title: "Jobs", cell: (q) => q.jobs },
        { title: "Pods placed", number: true, cell: (q) => q.placed }, { title: "Pods waiting", number: true, cell: (q) => q.pending },
      ],
    });
    searched.push(queues);
    section("queues", "Queues", "as they stand at the end", make("div", { class: "card" }, queues));
  }
  const percent = (x) => Number((100 * x).toPrecision(3)) + " %";

  function drawNodes() {
    const resources = [...new Set(data.nodes.flatMap((n) => (n.use || []).map((u) => u.resource)))];
    const parts = [];
    if (data.span > 0 && data.nodes.length > 1) {
      const use = new Map();
      for (const p of pods) if (p.bound !== null) use.set(p.node, (use.get(p.node) || 0) + p.size * (end(p) - Math.max(p.bound, 0)) / data.span);
      const map = heat({
        title: "Use of nodes over time", cells: data.nodes.map((n) => {
          const value = use.get(n.node) || 0;
          return { name: n.node, value, mark: n.state !== "Ready", text: `${Math.round(100 * value)} % in use on average${n.state === "Ready" ? "" : ", " + n.state}` };
        }),
        choose: (c) => { field.value = c.name; filter(); },
      });
      searched.push(map);
      parts.push(make("div", { class: "card chart" }, make("h3", {}, "Mean use over time"),
        make("p", { class: "soft small" }, "by the resource of which pods ask most, as a part of the largest node; Enter searches for a node"), map));
    }
    const table = list({
      title: "Nodes", rows: data.nodes, key: (n) => n.node, text: (n) => n.node + " " + n.state, attributes: (n) => ({ node: n.node }), page: 100,
      columns: [
        { title: "Node", cell: (n) => n.node }, { title: "State", cell: (n) => state(n.state === "Ready" ? "good" : "bad", n.state) },
        { title: "Pods", number: true, cell: (n) => n.pods },
        ...resources.map((r) => ({
          title: r, cell: (n) => {
            const u = (n.use || []).find((x) => x.resource === r);
            return u ? make("span", { class: "use-cell" }, bar({ part: u.percent / 100, label: `${r} ${u.percent} %` }), make("span", { class: "count" }, `${u.used} of ${u.total}`)) : "";
          },
        })),
        ...(data.nodes.some((n) => n.gpus) ? [{
          title: "GPUs", cell: (n) => n.gpus ? make("span", { class: "devices" }, ...n.gpus.map((g) => bar({ part: g.percent / 100, label: `device ${g.index} ${g.percent} %` }))) : "",
        }] : []),
      ],
    });
    searched.push(table);
    parts.push(make("div", { class: "card" }, table));
    section("nodes", "Nodes", "what is in use at the end", ...(data.nodes.length ? parts : [make("p", { class: "none" }, "There are no nodes.")]));
  }

  function filter() {
    const queue = filterLines(field.value) || "";
    filterBars(field.value, queue);
    for (const s of searched) s.search(field.value);
  }
  if (data.use.length && data.span > 0) drawUse();
  if (data.span > 0) drawTime();
  if (data.jobs.length && data.use.length) drawJobs();
  drawDecisions();
  drawQueues();
  drawNodes();
  let soon;
  field.addEventListener("input", () => {
    clearTimeout(soon);
    if (pods.length < 500) filter(); else soon = setTimeout(filter, 120);
  });
  document.addEventListener("keydown", (e) => {
    if (e.key === "/" && !/INPUT|SELECT|TEXTAREA/.test(document.activeElement.tagName)) { e.preventDefault(); field.focus(); field.select(); }
    if (e.key === "Escape" && (document.activeElement === field || field.value)) { field.value = ""; filter(); }
  });
})();
