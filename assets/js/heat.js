// A matrix too large for numbers: a canvas of pooled values, with the value under the pointer in words.

import {h} from "./dom.js";
import {heatColour, stateColour, step} from "./colour.js";
import {full} from "./format.js";

const LONGEST = 256; // pixels of the longer side

export class Heat {
  constructor(panel, slice, names) {
    Object.assign(this, {panel, names});
    this.canvas = h("canvas", {class: "heat", role: "img", "aria-label": `${panel.title}${slice.label ? ", " + slice.label : ""}`});
    this.says = h("output", {class: "heat-says"});
    const [rowAxis, colAxis] = panel.axes.length === 1 ? ["", panel.axes[0]] : panel.axes.slice(-2);
    this.node = h("div", {class: "heat-box"},
      h("span", {class: "heat-axis across"}, `${names[colAxis] ?? colAxis} →`),
      h("span", {class: "heat-axis down"}, rowAxis ? `${names[rowAxis] ?? rowAxis} →` : ""),
      this.canvas, this.says);
    this.canvas.addEventListener("pointermove", event => this.point(event));
    this.canvas.addEventListener("pointerleave", () => { this.says.textContent = ""; });
    this.cells = [];
  }

  update(slice, look) {
    if (slice.values_b64 === this.bytes && look.range === this.look?.range) return;
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

  point(event) {
    const {rows, cols, pooled: [down, right], whole: [tall, wide]} = this.slice, box = this.canvas.getBoundingClientRect();
    const r = Math.min(rows - 1, Math.max(0, Math.floor((event.clientY - box.top) / box.height * rows)));
    const c = Math.min(cols - 1, Math.max(0, Math.floor((event.clientX - box.left) / box.width * cols)));
    const span = (at, step, end) => (step === 1 ? `${at}` : `${at * step}–${Math.min(end, at * step + step) - 1}`);
    this.says.textContent = `[${span(r, down, tall)}, ${span(c, right, wide)}]  ${full(this.values[r * cols + c])}`;
  }
}
