// A matrix too large for numbers: a canvas of pooled values, with the value under the pointer in words.

import {h} from "./dom.js";
import {heatColour, stateColour, step} from "./colour.js";
import {typed} from "./format.js";

const LONGEST = 256; // pixels of the longer side

export class Heat {
  constructor(panel, slice, names, texts) {
    Object.assign(this, {panel, names});
    this.prefix = panel.shape.length === 1 ? [] : slice.prefix;
    this.at = panel.shape.length === 1 ? [0] : [...slice.prefix, 0, 0];
    this.canvas = h("canvas", {class: "heat", role: "application", tabindex: "0", "aria-label": texts.heat_label.replace("{label}", [panel.title, slice.label].filter(Boolean).join(", ")).replace("{hint}", texts.heat_keys)});
    this.says = h("output", {class: "heat-says"});
    const [rowAxis, colAxis] = panel.axes.length === 1 ? ["", panel.axes[0]] : panel.axes.slice(-2);
    this.node = h("div", {class: "heat-box"},
      h("span", {class: "heat-axis across"}, `${names[colAxis] ?? colAxis} →`),
      h("span", {class: "heat-axis down"}, rowAxis ? `${names[rowAxis] ?? rowAxis} →` : ""),
      this.canvas, this.says);
    this.canvas.addEventListener("pointermove", event => this.point(event));
    this.canvas.addEventListener("pointerleave", () => { this.says.textContent = ""; });
    this.canvas.addEventListener("click", event => {
      const [r, c] = this.pixel(event), [down, right] = this.slice.pooled;
      this.choose(r * down, c * right, this.slice.pooled);
    });
    this.canvas.addEventListener("focus", () => { if (this.canvas.matches(":focus-visible")) this.choose(...this.lastTwo()); });
    this.canvas.addEventListener("keydown", event => this.key(event));
    this.cells = [];
  }

  lastTwo() {
    return this.at.length === 1 ? [0, this.at[0]] : this.at.slice(-2);
  }

  /** Row and column of the drawn pixel that shows cell `i`, or null where another slice does. */
  placeOf(i) {
    if (!this.slice || i.slice(0, -2).join() !== this.prefix.join()) return null;
    const [row, column] = i.length === 1 ? [0, i[0]] : i.slice(-2), [down, right] = this.slice.pooled;
    return [Math.floor(row / down), Math.floor(column / right)];
  }

  /** Say that a cell is chosen; with `span`, the cell of so many rows and columns whose number is drawn. */
  choose(row, column, span) {
    this.at = this.at.length === 1 ? [column] : [...this.prefix, row, column];
    const pooled = span && span[0] * span[1] > 1;
    this.canvas.dispatchEvent(new CustomEvent("cell", {bubbles: true, detail: {q: this.panel.q, i: this.at, ...(pooled ? {span} : {})}}));
  }

  /** Arrows move by a cell, with Shift by a drawn pixel; Home and End go to the ends of a row. */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [tall, wide] = this.slice.whole, [row, column] = this.lastTwo(), [down, right] = event.shiftKey ? this.slice.pooled : [1, 1];
    const to = {ArrowUp: [row - down, column], ArrowDown: [row + down, column], ArrowLeft: [row, column - right], ArrowRight: [row, column + right],
      Home: [row, 0], End: [row, wide - 1]}[event.key];
    if (!to) return;
    event.preventDefault();
    event.stopPropagation();
    this.choose(Math.min(tall - 1, Math.max(0, to[0])), Math.min(wide - 1, Math.max(0, to[1])));
  }

  update(slice, look) {
    if (slice.values_b64 === this.bytes && look.range === this.look?.range && slice.state === this.slice.state && look.scale === this.look.scale) return;
    Object.assign(this, {bytes: slice.values_b64, slice, look});
    const raw = Uint8Array.from(atob(slice.values_b64), c => c.charCodeAt(0));
    this.values = new Float32Array(raw.buffer);
    const pixel = Math.max(1, LONGEST / Math.max(slice.rows, slice.cols));
    Object.assign(this.canvas, {width: slice.cols, height: slice.rows});
    Object.assign(this.canvas.style, {width: `${Math.min(LONGEST, slice.cols * Math.min(pixel, 14))}px`,
      height: `${Math.max(18, Math.min(LONGEST, slice.rows * Math.min(pixel, 14)))}px`});
    this.recolour();
  }

  recolour() {
    if (!this.values) return;
    const {rows, cols, state} = this.slice, context = this.canvas.getContext("2d"), image = context.createImageData(cols, rows);
    for (let n = 0; n < this.values.length; n++) {
      const x = this.values[n], hidden = state && state.charCodeAt(n) & 3;
      const [r, g, b] = hidden ? stateColour(hidden & 1 ? "future" : "padded") : Number.isNaN(x) ? stateColour("nan")
        : x === -Infinity ? stateColour("minus_infinity") : x === Infinity ? stateColour("infinity")
          : heatColour(step(x, this.look.scale, this.look.range), this.look.scale);
      image.data.set([r, g, b, 255], 4 * n);
    }
    context.putImageData(image, 0, 0);
  }

  /** Row and column of the pixel under the pointer. */
  pixel(event) {
    const {rows, cols} = this.slice, box = this.canvas.getBoundingClientRect();
    return [Math.min(rows - 1, Math.max(0, Math.floor((event.clientY - box.top) / box.height * rows))),
      Math.min(cols - 1, Math.max(0, Math.floor((event.clientX - box.left) / box.width * cols)))];
  }

  point(event) {
    const {cols, pooled: [down, right], whole: [tall, wide]} = this.slice, [r, c] = this.pixel(event);
    const span = (at, step, end) => (step === 1 ? `${at}` : `${at * step}–${Math.min(end, at * step + step) - 1}`);
    this.says.textContent = `[${span(r, down, tall)}, ${span(c, right, wide)}]  ${typed(this.values[r * cols + c])}`;
  }
}
