// Keys that work anywhere on the page, and the card that lists them.

import {h} from "./dom.js";

/** act: {choose(stage), step(by), undo(), redo(), help(), walk(), present(), escape()}; they rest once another page has taken root's place. */
export function listen(root, act) {
  escapes(root, act);
  document.addEventListener("keydown", event => {
    if (!root.isConnected) return undefined;
    const typing = event.target.closest?.("input:not([readonly]), select, textarea, [contenteditable]"), grid = event.target.closest?.('[role="grid"]');
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !event.altKey) {
      event.preventDefault();
      return event.shiftKey ? act.redo() : act.undo();
    }
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "y") {
      event.preventDefault();
      return act.redo();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || typing || event.target.closest?.("dialog")) return undefined;
    if (event.key === "?") return act.help();
    if (/^[1-8]$/.test(event.key)) return act.choose(Number(event.key));
    if (event.key === " " && !event.repeat && !event.target.closest?.("button, a, summary, label, [tabindex]:not(h1)")) {
      event.preventDefault();
      return act.walk();
    }
    if (event.key.toLowerCase() === "p") return act.present();
    if (grid) return undefined; // where arrows move from cell to cell
    const end = {Home: 1, End: 8}[event.key];
    if (end && !event.target.closest?.(".scroll, .slices, pre")) {
      event.preventDefault();
      return act.choose(end);
    }
    const by = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    return by && !event.target.closest?.(".scroll, .slices") ? act.step(by) : undefined;
  });
}

/** Escape, unless something nearer to the focus had a use for it: a cell, the inspector, a dialog. */
function escapes(root, act) {
  let inspecting = false;
  document.addEventListener("keydown", () => { inspecting = root.classList.contains("inspecting"); }, true);
  window.addEventListener("keydown", event => {
    if (event.key !== "Escape" || event.defaultPrevented || inspecting || !root.isConnected) return;
    if (!event.target.closest?.("dialog, select")) act.escape();
  });
}

export function helpCard(texts) {
  const card = h("dialog", {class: "card", "aria-labelledby": "keys-title"},
    h("h2", {id: "keys-title"}, texts.help),
    h("dl", {}, ...texts.keys.flatMap(([keys, does]) => [h("dt", {}, ...keys.split(" ").map(key => h("kbd", {}, key))), h("dd", {}, does)])),
    h("form", {method: "dialog"}, h("button", {class: "plain"}, texts.close)));
  card.addEventListener("click", event => { if (event.target === card) card.close(); });
  return card;
}
