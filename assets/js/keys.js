// Keys that work anywhere on the page, and the card that lists them.

import {h} from "./dom.js";

/** act: {choose(stage), step(by), undo(), redo(), help()} */
export function listen(root, act) {
  document.addEventListener("keydown", event => {
    const typing = event.target.closest?.("input, select, textarea, [contenteditable]");
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !event.altKey) {
      event.preventDefault();
      return event.shiftKey ? act.redo() : act.undo();
    }
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "y") {
      event.preventDefault();
      return act.redo();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || typing || event.target.closest?.('[role="grid"], dialog')) return undefined;
    if (event.key === "?") return act.help();
    if (/^[1-8]$/.test(event.key)) return act.choose(Number(event.key));
    const by = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    return by && !event.target.closest?.(".scroll, .slices") ? act.step(by) : undefined;
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
