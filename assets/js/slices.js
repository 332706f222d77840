// Buttons that choose the batch row, head, token or expert, where not all of them are shown.

import {h} from "./dom.js";

export class Slices {
  /** choose(letter, number). */
  constructor({texts, choose}) {
    Object.assign(this, {texts, choose, pickers: []});
    this.node = h("div", {class: "slice-bar", hidden: true});
  }

  update({slice, slice_counts: counts}) {
    const key = JSON.stringify(counts);
    if (key !== this.key) {
      this.key = key;
      this.pickers = Object.entries(counts).map(([letter, n]) => this.picker(letter, n));
      this.node.replaceChildren(...this.pickers.map(p => p.node));
      this.node.hidden = this.pickers.length === 0;
    }
    for (const picker of this.pickers) picker.set(slice[picker.letter]);
  }

  picker(letter, n) {
    const label = this.texts[`slice_${letter}`];
    const buttons = Array.from({length: n}, (_, i) => h("button", {type: "button", dataset: {slice: `${letter}${i}`}, "aria-pressed": "false", onclick: () => this.choose(letter, i)}, String(i)));
    const node = h("div", {class: "segments small", role: "group", "aria-label": label}, h("span", {class: "segments-label"}, label), ...buttons);
    return {letter, node, set: at => buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === at)))};
  }
}
