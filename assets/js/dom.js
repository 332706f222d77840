// Making DOM nodes in one expression. Knows nothing of the explorer.

/** h("button", {class: "x", "aria-label": "y", onclick: f, dataset: {q: 1}}, ...children) */
export function h(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "dataset") Object.assign(node.dataset, value);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "html") node.innerHTML = value; // only for text that the server has escaped
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter(child => child !== null && child !== undefined));
  return node;
}

export const CROSS = "M5 5L15 15M15 5L5 15";

/** A line icon of 20 by 20 units, drawn in the text colour. */
export function icon(path) {
  const span = document.createElement("span");
  span.className = "icon";
  span.setAttribute("aria-hidden", "true");
  span.innerHTML = `<svg viewBox="0 0 20 20"><path d="${path}"/></svg>`;
  return span;
}

/** Put each of two buttons in or out of use; the focus that one would lose goes to the other. */
export function inUse(one, usable, other, otherUsable) {
  const held = [one, other].find(button => button === document.activeElement);
  one.disabled = !usable;
  other.disabled = !otherUsable;
  if (held?.disabled) (held === one ? other : one).focus({preventScroll: true});
}

/** Write text only where it differs, so that an unchanged node costs nothing. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** The same for HTML that the server has escaped. */
export function setHtml(node, html) {
  if (node.written === html) return;
  node.written = html;
  node.innerHTML = html;
}

/** A row of buttons of which one is on; `choose(value)` is called on a click. */
export function segments(label, options, choose) {
  const buttons = options.map(([value, text, data = {}]) =>
    h("button", {type: "button", dataset: data, "aria-pressed": "false", onclick: () => choose(value)}, text));
  const node = h("div", {class: "segments", role: "group", "aria-label": label}, ...buttons);
  node.set = value => buttons.forEach((b, n) => b.setAttribute("aria-pressed", String(options[n][0] === value)));
  return node;
}

/** A scrolling box that says which of its edges hide something, for a fade. */
export function fading(box) {
  box.addEventListener("scroll", () => edges(box), {passive: true});
  resized.observe(box);
  return box;
}

const resized = new ResizeObserver(entries => entries.forEach(({target}) => edges(target)));
function edges(node) {
  const after = node.scrollWidth - node.clientWidth - node.scrollLeft, more = [node.scrollLeft > 1 && "left", after > 1 && "right"].filter(Boolean).join(" ");
  if (more) node.dataset.more = more;
  else delete node.dataset.more;
}
