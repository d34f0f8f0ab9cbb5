// The components of pages. They need no build step: a page loads this file as a script of its own, or holds it inline; it works under a
// Content-Security-Policy without inline scripts and styles. All that they show comes from data, set as text, never parsed as HTML.
//
// Each function below makes an element. Those whose data changes have a method update(data) as well, which shows other data of the same
// shape in the same element, and keeps what the reader has opened, chosen and searched for.
//
//   celsius.make(tag, props, ...children)   an element; see there
//   celsius.search(words)                   what is searched for, as a function over text
//   celsius.state(kind, word)               a state as a coloured word with a sign
//   celsius.bar(data)                       how much of something is in use
//   celsius.curve(data)                     amounts over time
//   celsius.heat(data)                      thousands of cells by value
//   celsius.tree(data)                      rows below rows, such as queues
//   celsius.list(data)                      a table with groups and search
"use strict";
var celsius = (() => {
  // make gives an element. props are its properties, but for: class, the classes; data, an object of data attributes; aria and attr,
  // objects of (aria-) attributes; on, an object of listeners; style, an object of CSS properties, custom ones too. Children are nodes, or
  // anything else as text; null, undefined and false are left out.
  function make(tag, props = {}, ...children) {
    const e = document.createElement(tag);
    for (const [name, value] of Object.entries(props)) {
      if (value === undefined || value === null) continue;
      if (name === "class") e.className = value;
      else if (name === "data") Object.assign(e.dataset, value);
      else if (name === "aria") for (const [k, v] of Object.entries(value)) e.setAttribute("aria-" + k, v);
      else if (name === "attr") for (const [k, v] of Object.entries(value)) e.setAttribute(k, v);
      else if (name === "on") for (const [k, v] of Object.entries(value)) e.addEventListener(k, v);
      else if (name === "style") for (const [k, v] of Object.entries(value)) e.style.setProperty(k, v);
      else e[name] = value;
    }
    e.append(...children.filter((c) => c !== null && c !== undefined && c !== false));
    return e;
  }

  function drawn(tag, attributes) {
    const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    return e;
  }

  // search gives a function that says whether a text has all of the words, in any case and order.
  function search(words) {
    const all = words.toLowerCase().split(/\s+/).filter(Boolean);
    return (text) => { const t = text.toLowerCase(); return all.every((w) => t.includes(w)); };
  }

  // state gives a word for a state. kind is "good", "wait", "bad" or "plain", each with a sign of its own.
  const state = (kind, word) => make("span", { class: "state " + kind }, word);

  // bar gives a meter. data:
  //   part    how much is in use, 0 to 1
  //   label   what is told to who does not see it, "cpu 40 %"
  //   mark    optional: where a mark stands, 0 to 1, such as what is deserved
  //   colour  optional: a class of a queue's colour, q0 to q7 or other
  function bar(data) {
    const e = make("span", { attr: { role: "img" } });
    const fill = make("i"), mark = make("i", { class: "mark" });
    e.append(fill, mark);
    e.update = (d) => {
      const within = (x) => 100 * Math.min(Math.max(x, 0), 1) + "%";
      e.className = "meter " + (d.colour || "") + (d.part >= .999 ? " full" : "");
      e.setAttribute("aria-label", d.label);
      e.title = d.label;
      fill.style.width = within(d.part);
      mark.hidden = d.mark === undefined || d.mark === null;
      if (!mark.hidden) mark.style.left = `calc(${within(d.mark)} - 1px)`;
    };
    e.update(data);
    return e;
  }

  // curve gives amounts over time, each line a staircase: a point holds until the next one. data:
  //   title   what the amounts are of
  //   note    optional: a text at its right, such as mean and peak
  //   from, to   the ends of the axis of time, numbers
  //   top     optional: the amount at the upper edge; else the most there is
  //   lines   [{name, kind, points: [[time, amount], ...]}], points by time; kind is "use" or "allocated" (an area), "deserved",
  //           "borrowed", "total" or "mean" (a line each with a pattern of its own)
  //   time, amount   functions that put a time and an amount into words
  //   colour  optional: a class of a queue's colour
  // A pointer, or the arrow keys, Home and End, read the amounts at a time; the text is below the curve, and told to screen readers.
  function curve(data) {
    const title = make("h3"), note = make("span", { class: "soft n" }), said = make("output", { aria: { live: "off" } });
    const cursor = make("div", { class: "cursor", hidden: true }), axis = make("div", { class: "times", aria: { hidden: "true" } });
    const plot = make("div", { class: "plot", tabIndex: 0, attr: { role: "slider" } });
    const e = make("div", {}, make("div", { class: "head-line" }, title, note), plot, axis, said);
    let d, moments, at;
    const points = (l) => l.points.filter(([t]) => t <= d.to);
    const valueAt = (l, t) => {
      let lo = 0, hi = l.points.length; // the last point that is not after t
      while (lo < hi) { const mid = (lo + hi) >> 1; if (l.points[mid][0] <= t) lo = mid + 1; else hi = mid; }
      return lo ? l.points[lo - 1][1] : undefined;
    };
    const key = () => d.lines.map((l) => make("span", { class: "key " + l.kind }, l.name));
    const idle = () => { cursor.hidden = true; said.replaceChildren(make("span", { class: "legend" }, ...key())); };
    // tell has screen readers told what there is at a time, and gives it line by line.
    function tell(t) {
      const texts = d.lines.map((l) => [l, valueAt(l, t)]).filter(([, v]) => v !== undefined).map(([l, v]) => [l.kind, `${l.name} ${d.amount(v)}`]);
      plot.setAttribute("aria-valuenow", t);
      plot.setAttribute("aria-valuetext", [d.time(t), ...texts.map(([, text]) => text)].join(", "));
      return texts;
    }
    function read(t) {
      at = Math.min(Math.max(t, d.from), d.to);
      cursor.hidden = false;
      cursor.style.left = 100 * (at - d.from) / (d.to - d.from || 1) + "%";
      said.replaceChildren(make("span", { class: "legend" }, make("strong", {}, d.time(at)),
        ...tell(at).map(([kind, text]) => make("span", { class: "key " + kind }, text))));
    }
    plot.addEventListener("pointermove", (ev) => {
      const r = plot.getBoundingClientRect();
      read(d.from + (d.to - d.from) * (ev.clientX - r.left) / r.width);
    });
    plot.addEventListener("pointerleave", () => { if (document.activeElement !== plot) idle(); });
    plot.addEventListener("focus", () => read(at));
    plot.addEventListener("blur", idle);
    plot.addEventListener("keydown", (ev) => {
      let to;
      if (ev.key === "ArrowRight" || ev.key === "ArrowUp") to = moments.find((t) => t > at) ?? d.to;
      else if (ev.key === "ArrowLeft" || ev.key === "ArrowDown") to = moments.findLast((t) => t < at) ?? d.from;
      else if (ev.key === "PageDown") to = at + (d.to - d.from) / 10;
      else if (ev.key === "PageUp") to = at - (d.to - d.from) / 10;
      else if (ev.key === "Home") to = d.from;
      else if (ev.key === "End") to = d.to;
      else return;
      ev.preventDefault();
      read(to);
    });
    function path(l, top, closed) {
      const x = (t) => (1000 * (Math.max(t, d.from) - d.from) / (d.to - d.from || 1)).toFixed(1);
      const y = (v) => (100 - 100 * Math.min(v / top, 1)).toFixed(2);
      const ps = points(l);
      if (!ps.length) return "";
      let out = closed ? `M${x(ps[0][0])} 100V${y(ps[0][1])}` : `M${x(ps[0][0])} ${y(ps[0][1])}`;
      for (const [t, v] of ps.slice(1)) out += `H${x(t)}V${y(v)}`;
      return out + `H${x(d.to)}` + (closed ? "V100Z" : "");
    }
    e.update = (next) => {
      d = next;
      e.className = "curve card " + (d.colour || "");
      title.textContent = d.title;
      note.textContent = d.note || "";
      moments = [...new Set(d.lines.flatMap((l) => l.points.map((p) => p[0])))].filter((t) => t >= d.from && t <= d.to).sort((a, b) => a - b);
      const top = d.top || Math.max(...d.lines.flatMap((l) => l.points.map((p) => p[1])), 0) || 1;
      const svg = drawn("svg", { viewBox: "0 0 1000 100", preserveAspectRatio: "none", "aria-hidden": "true" });
      for (const part of [0, 50, 100]) svg.append(drawn("line", { class: "grid-line", x1: 0, x2: 1000, y1: part, y2: part }));
      for (const l of d.lines) {
        if (l.kind === "use" || l.kind === "allocated") svg.append(drawn("path", { class: "area", d: path(l, top, true) }));
        svg.append(drawn("path", { class: l.kind, d: path(l, top, false) }));
      }
      plot.replaceChildren(svg, cursor);
      axis.replaceChildren(...[0, .25, .5, .75, 1].map((p) => make("span", {}, d.time(d.from + p * (d.to - d.from)))));
      for (const [k, v] of Object.entries({ label: `${d.title}${d.note ? ", " + d.note : ""}`, valuemin: d.from, valuemax: d.to })) {
        plot.setAttribute("aria-" + k, v);
      }
      at ??= d.from;
      tell(at);
      if (document.activeElement === plot) read(at); else idle();
    };
    e.update(data);
    return e;
  }

  // heat gives a map of cells on a canvas, in the order of the data, row by row. data:
  //   title   what the values are
  //   cells   [{name, value, text, mark}]: value 0 to 1, or null where there is none; text is read out; mark, where true, draws a cross
  //           (a node that is not ready, say)
  //   choose  optional: called with the cell that is clicked, or entered by Enter
  //   size    optional: a function that gives the side of a cell by the width of the map, in pixels
  // search(words) dims the cells in whose name and text the words are not. The arrow keys, Home and End go from cell to cell.
  function heat(data) {
    const canvas = make("canvas", { tabIndex: 0, attr: { role: "img" } }), said = make("output");
    const scale = make("span", { class: "scale", aria: { hidden: "true" } }, "0 % ",
      ...[0, 1, 2, 3, 4, 5].map((i) => make("i", { class: "heat" + i })), " 100 %");
    const e = make("div", { class: "heat" }, canvas, said, scale);
    const g = canvas.getContext("2d");
    let d, width = 0, side, columns, fill, ink, at = -1, fits = null, painted = [];
    // how a cell is to look, as a number: its step of the scale, or 6 where it has no value; marked; dimmed; where the reader is
    function look(c, i) {
      const v = c.value, step = v === null || v === undefined ? 6 : v <= 0 ? 0 : Math.min(Math.floor(v * 5) + 1, 5);
      return step + (c.mark ? 8 : 0) + (fits && !fits(c.name + " " + (c.text || "")) ? 16 : 0) + (i === at ? 32 : 0);
    }
    // measure reads what the page says, the width and the colours of the reader's theme, and has all cells be painted anew.
    function measure() {
      const ratio = window.devicePixelRatio || 1;
      width = canvas.clientWidth;
      if (!width) return;
      fill = [...scale.querySelectorAll("i")].map((i) => getComputedStyle(i).backgroundColor);
      ink = getComputedStyle(e).color;
      side = d.size ? d.size(width) : d.cells.length > 2000 ? 8 : d.cells.length > 400 ? 12 : 18;
      columns = Math.max(Math.floor(width / side), 1);
      const height = Math.max(Math.ceil(d.cells.length / columns), 1) * side;
      canvas.style.height = height + "px";
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      g.scale(ratio, ratio);
      painted = new Array(d.cells.length);
      paint();
    }
    // paint draws the cells that look otherwise than they did: there may be thousands, of which few change.
    function paint() {
      if (!width) return;
      d.cells.forEach((c, i) => {
        const now = look(c, i);
        if (now === painted[i]) return;
        painted[i] = now;
        const x = i % columns * side, y = Math.floor(i / columns) * side, inner = side - 1, step = now % 8;
        g.globalAlpha = now & 16 ? .15 : 1;
        g.clearRect(x, y, side, side);
        if (step === 6) {
          g.strokeStyle = fill[2];
          g.strokeRect(x + .5, y + .5, inner - 1, inner - 1);
        } else {
          g.fillStyle = fill[step];
          g.fillRect(x, y, inner, inner);
        }
        if (now & 8) {
          g.strokeStyle = ink;
          g.beginPath();
          g.moveTo(x + 2, y + 2); g.lineTo(x + inner - 2, y + inner - 2); g.moveTo(x + inner - 2, y + 2); g.lineTo(x + 2, y + inner - 2);
          g.stroke();
        }
        if (now & 32) { g.globalAlpha = 1; g.strokeStyle = ink; g.lineWidth = 2; g.strokeRect(x + 1, y + 1, inner - 2, inner - 2); g.lineWidth = 1; }
      });
    }
    function read(i) {
      at = i;
      const c = d.cells[i];
      said.textContent = c ? `${c.name}: ${c.text || ""}` : "";
      canvas.setAttribute("aria-label", `${d.title}: ${said.textContent || d.cells.length + " cells"}`);
      paint();
    }
    const under = (ev) => {
      const r = canvas.getBoundingClientRect(), column = Math.floor((ev.clientX - r.left) / side);
      const i = Math.floor((ev.clientY - r.top) / side) * columns + column;
      return column < columns && d.cells[i] ? i : -1;
    };
    const choose = () => { if (d.choose && d.cells[at]) d.choose(d.cells[at]); };
    canvas.addEventListener("pointermove", (ev) => { const i = under(ev); if (i >= 0 && i !== at) read(i); });
    canvas.addEventListener("click", (ev) => { const i = under(ev); if (i >= 0) { read(i); choose(); } });
    canvas.addEventListener("focus", () => { if (at < 0 && d.cells.length) read(0); });
    canvas.addEventListener("keydown", (ev) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns, Home: -at, End: d.cells.length - 1 - at }[ev.key];
      if (ev.key === "Enter") choose();
      if (step === undefined) return;
      ev.preventDefault();
      if (d.cells[at + step]) read(at + step);
    });
    e.update = (next) => {
      const name = d && at >= 0 && d.cells[at] ? d.cells[at].name : undefined, others = d && d.cells.length !== next.cells.length;
      d = next;
      at = name === undefined ? -1 : d.cells.findIndex((c) => c.name === name);
      if (others) measure();
      read(at);
    };
    e.search = (w) => { fits = w.trim() ? search(w) : null; paint(); };
    new ResizeObserver(() => { if (canvas.clientWidth !== width) measure(); }).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", measure);
    e.update(data);
    return e;
  }

  function updates(e, update, data) {
    e.update = update;
    update(data);
  }

  // cells gives the cells of a row. columns: [{title, cell, number, class}]: cell(row) gives a node or text; number aligns at the right.
  function cells(columns, row, first) {
    return columns.map((c, i) => {
      const shown = c.cell(row), content = i === 0 && first ? [first, shown] : [shown];
      return make("td", { class: [c.number ? "n" : "", c.class || ""].join(" ").trim(), data: { label: c.title } },
        content.some((x) => x !== undefined && x !== null && x !== "") && make("span", {}, ...content)); // nothing leaves it empty
    });
  }

  // head sets the head of a table; the body stays where it is, and so does the focus in it.
  function head(table, columns) {
    table.tHead?.remove();
    table.prepend(make("thead", {}, make("tr", {},
      ...columns.map((c) => make("th", { class: c.number ? "n" : "", attr: { scope: "col" } }, c.title)))));
  }

  // tree gives rows below rows. data:
  //   title    what the rows are, told to screen readers
  //   columns  as of cells, above
  //   rows     [{key, parent, ...}], in any order; a row whose parent is not there is at the top; siblings keep their order
  //   closed   optional: a function that says whether a row that has rows below it is closed at first
  //   text     optional: a function that gives what is searched of a row; else its key
  // Up and Down go from row to row, Right and Left open and close. search(words) shows what has the words, with the rows above.
  function tree(data) {
    const body = make("tbody"), table = make("table", { class: "stack", attr: { role: "treegrid" } }, body);
    const closed = new Map();
    let d, words = "", current;
    function show() {
      const below = new Map(), there = new Set(d.rows.map((r) => r.key)), fits = search(words), text = d.text || ((r) => r.key);
      for (const r of d.rows) {
        const above = there.has(r.parent) && r.parent !== r.key ? r.parent : "";
        if (!below.has(above)) below.set(above, []);
        below.get(above).push(r);
      }
      const out = [], had = new Map([...body.children].map((tr) => [tr.dataset.key, tr]));
      const shown = (r) => fits(text(r)) || (below.get(r.key) || []).some(shown);
      const walk = (rows, level) => {
        for (const r of rows.filter(shown)) {
          const parents = below.has(r.key);
          if (!closed.has(r.key)) closed.set(r.key, parents && d.closed ? d.closed(r) : false);
          const open = parents && (words !== "" || !closed.get(r.key));
          const first = make("span", { class: parents ? "" : "leaf" });
          if (parents) first.append(make("button", { class: "fold", tabIndex: -1, aria: { expanded: open, label: (open ? "close " : "open ") + r.key }, on: { click: () => turn(r.key) } }));
          first.style.paddingLeft = 1.1 * level + "rem";
          const tr = had.get(r.key) || make("tr", { data: { key: r.key }, attr: { role: "row" } }); // the same row stays where the reader is
          had.delete(r.key);
          tr.tabIndex = -1;
          tr.setAttribute("aria-level", level + 1);
          if (parents) tr.setAttribute("aria-expanded", open); else tr.removeAttribute("aria-expanded");
          tr.replaceChildren(...cells(d.columns, r, first));
          out.push(tr);
          if (open) walk(below.get(r.key), level + 1);
        }
      };
      const focused = body.contains(document.activeElement);
      walk(below.get("") || [], 0);
      had.forEach((tr) => tr.remove());
      out.forEach((tr, i) => { if (body.children[i] !== tr) body.insertBefore(tr, body.children[i] || null); });
      const to = out.find((tr) => tr.dataset.key === current) || out[0];
      if (to) to.tabIndex = 0;
      if (to && focused && !body.contains(document.activeElement)) to.focus({ preventScroll: true }); // what had it was within a cell
    }
    function turn(key) { closed.set(key, !closed.get(key)); current = key; show(); }
    body.addEventListener("keydown", (ev) => {
      const tr = ev.target.closest("tr"), all = [...body.children], i = all.indexOf(tr), key = tr.dataset.key;
      const open = tr.getAttribute("aria-expanded");
      let to = { ArrowDown: all[i + 1], ArrowUp: all[i - 1], Home: all[0], End: all[all.length - 1] }[ev.key];
      if (ev.key === "ArrowRight" && open === "false" || ev.key === "ArrowLeft" && open === "true" || ev.key === "Enter" && open) turn(key);
      else if (!to) return;
      ev.preventDefault();
      if (to) to.focus();
    });
    body.addEventListener("focusin", (ev) => { // where the reader is can be reached by Tab, and nothing else
      current = ev.target.closest("tr").dataset.key;
      for (const tr of body.children) tr.tabIndex = tr.dataset.key === current ? 0 : -1;
    });
    updates(table, (next) => {
      d = next;
      table.setAttribute("aria-label", d.title);
      head(table, d.columns);
      show();
    }, data);
    table.search = (w) => { words = w; show(); };
    return table;
  }

  // list gives a table. data:
  //   title    what the rows are, told to screen readers
  //   columns  as of cells, above
  //   rows     [...], in the order in which they are shown
  //   text     a function that gives what is searched of a row
  //   group    optional: a function that gives the group of a row; neighbours of one group are one line with a count, which opens
  //   whole    optional: a function that gives the row that stands for a group's rows; else the first
  //   key      optional: a function that gives what a row or whole is known by, so that it stays open when data changes
  //   attributes  optional: a function that gives the data attributes of a row
  //   below    optional: a function that gives a node with more about a row, or null; the line opens
  //   page     optional: how many lines are shown at first, and more each time; 200
  //   counted  optional: called with how many rows are shown, and how many there are
  // search(words) shows the rows that have the words; filter(f) those for which f(row) is true besides. At "Show more", more.
  function list(data) {
    const body = make("tbody"), table = make("table", { class: "stack" }, body), more = make("button", { class: "more-lines" });
    const none = make("p", { class: "none", hidden: true }, "Nothing matches.");
    const e = make("div", {}, table, none, more);
    const opened = new Set();
    let d, words = "", keep = () => true, lines = [], limit;
    const keyOf = (r) => d.key ? d.key(r) : r;
    function line(row, count, key, sub, inside) {
      const open = opened.has(key), opens = inside !== null;
      const first = opens ? make("button", { class: "fold", aria: { expanded: open, label: open ? "close" : "open" } }) : make("span", { class: "leaf" });
      if (opens) first.opens = key;
      const tr = make("tr", { class: sub ? "sub" : "", data: d.attributes ? d.attributes(row) : {} }, ...cells(d.columns, row, first));
      if (count > 1) tr.firstChild.firstChild.append(" ", make("span", { class: "count" }, "\u00d7" + count));
      const out = [tr];
      if (opens) first.addEventListener("click", () => {
        if (opened.has(key)) opened.delete(key); else opened.add(key);
        const next = line(row, count, key, sub, inside);
        out.slice(1).forEach((x) => x.remove());
        tr.replaceWith(...next);
        next[0].querySelector(".fold").focus();
      });
      if (opens && open) out.push(...inside());
      return out;
    }
    const single = (row, sub) => {
      const node = d.below ? d.below(row) : null;
      return line(row, 1, keyOf(row), sub, node && (() => [make("tr", { class: "below" + (sub ? " sub" : "") }, make("td", { colSpan: d.columns.length }, node))]));
    };
    function drawLine(rows) {
      if (rows.length === 1) return single(rows[0], false);
      const whole = d.whole ? d.whole(rows) : rows[0];
      return line(whole, rows.length, "group " + (d.key ? d.key(rows[0]) : d.group(rows[0])), false, () => rows.flatMap((r) => single(r, true)));
    }
    function show() {
      const fits = search(words), rows = d.rows.filter((r) => keep(r) && (words === "" || fits(d.text(r))));
      lines = [];
      for (const r of rows) {
        const last = lines[lines.length - 1];
        if (d.group && last && d.group(last[0]) === d.group(r)) last.push(r); else lines.push([r]);
      }
      const focused = body.contains(document.activeElement) ? document.activeElement.opens : undefined;
      body.replaceChildren(...lines.slice(0, limit).flatMap(drawLine));
      if (focused !== undefined) [...body.querySelectorAll(".fold")].find((b) => b.opens === focused)?.focus();
      none.hidden = rows.length > 0;
      more.hidden = lines.length <= limit;
      more.textContent = `Show more (${lines.length - limit} of ${lines.length} lines)`;
      if (d.counted) d.counted(rows.length, d.rows.length);
    }
    more.addEventListener("click", () => {
      body.append(...lines.slice(limit, limit += d.page || 200).flatMap(drawLine));
      more.hidden = lines.length <= limit;
      more.textContent = `Show more (${lines.length - limit} of ${lines.length} lines)`;
    });
    updates(e, (next) => {
      d = next;
      limit = Math.max(limit || 0, d.page || 200);
      table.setAttribute("aria-label", d.title);
      head(table, d.columns);
      show();
    }, data);
    e.search = (w) => { words = w; show(); };
    e.filter = (f) => { keep = f; show(); };
    return e;
  }

  return Object.freeze({ make, search, state, bar, curve, heat, tree, list });
})();
