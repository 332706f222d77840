// A quantity or weight on the page: its caption, its slices as grids or heatmaps, what is wrong with a typed text.

import {fading, h, setHtml, setText} from "./dom.js";
import {Grid} from "./grid.js";
import {Heat} from "./heat.js";
import {short} from "./format.js";

const MANY = 9; // columns; beyond it cells are smaller where room is scarce

/** What must be equal for a panel to be written to in place. */
export const signature = panel =>
  [panel.q, panel.kind, panel.shape, panel.editable, panel.first, panel.slices.map(s => s.prefix)].join("|");

export class Panel {
  constructor(panel, {names, texts}) {
    this.texts = texts;
    this.q = panel.q;
    const Kind = panel.kind === "grid" ? Grid : Heat;
    this.slices = panel.slices.map(slice => new Kind(panel, slice, names, texts));
    this.letters = h("span", {class: "letters"});
    this.size = h("span", {class: "num"});
    this.range = h("span", {class: "range num", title: texts.range_hint});
    const [across, down] = [...panel.axes].reverse().map(letter => names[letter]);
    const order = down ? `${down} × ${across}` : across;
    this.errors = h("div", {class: "cell-errors"});
    this.node = h("figure", {class: `panel role-${panel.role}${panel.weight ? " weight" : ""}`, dataset: {panel: panel.q}},
      h("figcaption", {},
        h("span", {class: "sym", html: panel.symbol}), h("span", {class: "panel-title", html: panel.caption}),
        h("span", {class: "panel-shape"}, this.letters, this.size)),
      h("div", {class: "slices"}, ...panel.slices.map((slice, n) =>
        h("div", {class: `slice${slice.cols > MANY && panel.kind === "grid" ? " dense" : ""}`}, slice.label ? h("span", {class: "slice-label"}, slice.label) : null, this.slices[n].node))),
      h("div", {class: "panel-foot"}, h("span", {title: texts.order_hint}, order), this.range, panel.note ? h("span", {}, panel.note) : null),
      this.errors);
    this.node.querySelectorAll(".slice").forEach(fading);
  }

  update(panel, compare) {
    const look = {scale: panel.scale, range: panel.range, compare};
    setHtml(this.letters, panel.letters);
    setText(this.size, panel.shape.join("×"));
    setText(this.range, panel.scale === "index" ? "" : panel.scale === "unit" ? "0 … 1" : `±${short(panel.range)}`);
    panel.slices.forEach((slice, n) => this.slices[n].update(slice, look));
  }

  get cells() {
    return this.slices.flatMap(slice => slice.cells);
  }

  find(i) {
    return this.cells.find(cell => cell.index.join() === i.join());
  }

  /** Say beside the grid what is wrong with a cell's text; an empty message takes it back. */
  complain(cell, message) {
    const key = `${this.q}:${cell.index.join(",")}`;
    let said = [...this.errors.children].find(node => node.dataset.errorFor === key);
    if (!message) {
      said?.remove();
      cell.face.removeAttribute("aria-invalid");
      cell.face.removeAttribute("aria-describedby");
      return;
    }
    if (!said) {
      said = h("p", {class: "error", role: "alert", id: `error-${key}`, dataset: {errorFor: key}});
      this.errors.append(said);
    }
    setText(said, message);
    cell.face.setAttribute("aria-invalid", "true");
    cell.face.setAttribute("aria-describedby", said.id);
  }

  recolour() {
    this.slices.forEach(slice => slice.recolour());
  }
}
