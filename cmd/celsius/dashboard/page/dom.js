// What is written comes from objects of the cluster, and so only ever becomes text.

/** Makes an element. Properties are attributes as HTML has them, and, by on-, listeners; children may be lists. */
export function h(tag, props = {}, ...children) {
  const attr = {}, on = {};
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) on[name.slice(2)] = value;
    else if (value !== undefined && value !== null && value !== false) attr[name] = value === true ? "" : value;
  }
  return celsius.make(tag, {attr, on}, ...children.flat());
}

export const $ = id => document.getElementById(id);

/** Writes a text where it is another. */
export function text(e, value) {
  value = String(value);
  if (e.textContent !== value) e.textContent = value;
}

/** Has the children of a parent be those of items, by their keys; those that stay keep focus and place. */
export function keyed(parent, items, key, make, update) {
  const wanted = new Set(items.map(key)), had = new Map();
  for (const e of [...parent.children]) { // what goes does so first: what is moved loses its focus
    if (wanted.has(e.dataset.key) && !had.has(e.dataset.key)) had.set(e.dataset.key, e);
    else e.remove();
  }
  let at = parent.firstElementChild;
  for (const item of items) {
    const k = key(item);
    let e = had.get(k);
    had.delete(k);
    if (!e) {
      e = make(item);
      e.dataset.key = k;
    }
    update(e, item);
    if (e === at) at = at.nextElementSibling;
    else parent.insertBefore(e, at);
  }
}

/** Has one of many links be reached by Tab, and the others by the arrow keys. */
export function roving(parent, selector) {
  const all = () => [...parent.querySelectorAll(selector)];
  parent.addEventListener("focusin", event => {
    const here = event.target.closest(selector);
    if (here) for (const e of all()) e.tabIndex = e === here ? 0 : -1;
  });
  parent.addEventListener("keydown", event => {
    const list = all(), at = list.indexOf(event.target.closest(selector));
    const to = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: list.length - 1}[event.key];
    if (at < 0 || to === undefined || !list[to]) return;
    event.preventDefault();
    list[to].focus();
  });
  return () => { // after an update: one can be reached
    const list = all();
    const reached = list.filter(e => e.tabIndex === 0);
    if (reached.length !== 1) list.forEach((e, i) => { e.tabIndex = i === 0 ? 0 : -1; });
  };
}

const bytes = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

/** Writes an amount of a resource as people do. */
export function amount(resource, value) {
  if (value === undefined || value < 0) return "–";
  if (/memory|storage|hugepages/.test(resource)) {
    let i = 0;
    while (value >= 1024 && i < bytes.length - 1) {
      value /= 1024;
      i++;
    }
    return round(value) + (bytes[i] ? " " + bytes[i] : "");
  }
  return round(value);
}

export function round(value) {
  const places = value < 10 && value % 1 ? 2 : value < 100 ? 1 : 0;
  return value.toLocaleString("en", {maximumFractionDigits: places});
}

export const count = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;

/** How long something is ago, or lasts: 4 s, 12 min, 3 h, 2 d. */
export function span(seconds) {
  seconds = Math.max(0, seconds);
  if (seconds < 100) return `${Math.floor(seconds)} s`;
  if (seconds < 6000) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

export const ago = time => span((Date.now() - Date.parse(time)) / 1000);

export const clock = time => new Date(time).toLocaleTimeString("en-GB");

/** A command, with a button that copies it. */
export function command(line) {
  const button = h("button", {type: "button", class: "copy", "aria-label": "Copy: " + line, onclick: async () => {
    let done = "copied";
    try {
      await navigator.clipboard.writeText(line);
    } catch { // not allowed, or no secure context: it is selected, to be copied by hand
      getSelection().selectAllChildren(code);
      done = "selected";
    }
    button.textContent = done;
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  }}, "copy");
  const code = h("code", {}, line);
  return h("li", {}, code, button);
}
