// Parts of the page that open and close; this browser remembers which are open.

import {h} from "./dom.js";

const KEY = "explorer.open";

function remembered() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? {};
  } catch {
    return {}; // storage may be closed to us: then every part starts as it is declared
  }
}

function remember(name, open) {
  try {
    localStorage.setItem(KEY, JSON.stringify({...remembered(), [name]: open}));
  } catch {}
}

/** A <details> that keeps its state under `name`; attributes as for h(). */
export function fold(name, {open = false, title, ...attributes}, ...children) {
  const node = h("details", {...attributes, open: remembered()[name] ?? open}, h("summary", {}, h("h2", {}, title)), ...children);
  node.addEventListener("toggle", () => remember(name, node.open));
  return node;
}
