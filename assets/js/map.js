// The block map: the residual stream with its two branches, eight stages, live shapes, a thumbnail of each tensor.

import {h} from "./dom.js";
import {cellRgb, stateColour, step, thumbRgb, whenThemeChanges} from "./colour.js";
import {LANE, Walker} from "./walker.js";

const MASKED = -128, MISSING = -127; // codes in a thumbnail's bytes
const SVG = "http://www.w3.org/2000/svg";

export class BlockMap {
  /** rows: [{stage, title, names}] from the server; choose(stage). */
  constructor({rows, quantities, texts, choose}) {
    this.quantities = quantities;
    this.thumbs = new Map();
    this.buttons = [];
    this.lines = document.createElementNS(SVG, "svg");
    this.lines.setAttribute("class", "map-lines");
    this.lines.setAttribute("aria-hidden", "true");
    this.rows = rows.map(row => this.row(row, choose));
    this.walker = new Walker();
    this.list = h("div", {class: "map-rows"}, this.lines, this.walker.node, ...this.rows);
    this.node = h("nav", {class: "map", "aria-label": texts.map}, this.list);
    this.node.addEventListener("keydown", event => this.walk(event, choose));
    new ResizeObserver(() => this.draw()).observe(this.list);
    whenThemeChanges(() => this.thumbs.forEach(thumb => thumb.paint()));
  }

  row({stage, title, names, adds}, choose) {
    const shapes = h("span", {class: "map-shapes"});
    const thumbs = h("span", {class: "map-thumbs", "aria-hidden": "true"});
    const label = h("span", {class: "map-label"},
      h("span", {class: "map-title"}, stage && !adds ? h("b", {class: "map-number"}, String(stage)) : null, h("span", {html: title})), shapes);
    const button = stage && !adds;
    const node = button
      ? h("button", {type: "button", class: "map-row", dataset: {stage}, onclick: () => choose(stage)}, label, thumbs)
      : h("div", {class: "map-row still"}, label, thumbs);
    if (button) this.buttons.push(node);
    Object.assign(node, {names, shapes, thumbs});
    return node;
  }

  choose(stage) {
    if (this.current === stage) return;
    this.current = stage;
    for (const button of this.buttons) {
      const on = Number(button.dataset.stage) === stage;
      button.setAttribute("aria-current", on ? "step" : "false");
      button.tabIndex = on ? 0 : -1;
      if (on && this.node.scrollWidth > this.node.clientWidth) {
        this.node.scrollTo({left: button.offsetLeft - (this.node.clientWidth - button.offsetWidth) / 2});
      }
    }
    this.lines.dataset.on = stage;
  }

  walk(event, choose) {
    const step = {ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1}[event.key];
    const to = event.key === "Home" ? 1 : event.key === "End" ? 8 : step ? this.current + step : 0;
    if (to < 1 || to > 8) return;
    event.preventDefault();
    event.stopPropagation();
    this.buttons[to - 1].focus();
    choose(to);
  }

  /** map: {thumbs: {name: {shape, r, c, v}}} */
  update({thumbs}) {
    for (const row of this.rows) {
      const present = row.names.filter(name => thumbs[name]);
      const key = present.map(name => name + thumbs[name].shape).join();
      if (row.key !== key) {
        row.key = key;
        row.shapes.replaceChildren(...this.shapeLines(present, thumbs));
        row.thumbs.replaceChildren(...present.map(name => this.thumb(name).node));
      }
      for (const name of present) this.thumb(name).update(thumbs[name]);
    }
  }

  thumb(name) {
    if (!this.thumbs.has(name)) this.thumbs.set(name, new Thumb(name, this.quantities[name]));
    return this.thumbs.get(name);
  }

  /** One line for each distinct shape: the symbols that share it, then the numbers. */
  shapeLines(names, thumbs) {
    const groups = new Map();
    for (const name of names) {
      const shape = thumbs[name].shape.join("×");
      groups.set(shape, [...(groups.get(shape) ?? []), name]);
    }
    return [...groups].map(([shape, members]) => h("span", {class: "map-shape"},
      ...members.map(name => h("i", {class: `sym role-${this.quantities[name].role}`, html: this.quantities[name].symbol})),
      h("span", {class: "num"}, shape)));
  }

  /** Lay the lines through the middle of each row. */
  draw() {
    const y = this.rows.map(row => row.offsetTop + row.offsetHeight / 2);
    if (!y[9] || !this.list.offsetHeight) return;
    this.lines.setAttribute("width", 92);
    this.lines.setAttribute("height", this.list.offsetHeight);
    const tall = this.rows.map(row => row.offsetHeight);
    this.lines.innerHTML = strands(y, tall);
    this.walker.lay(y, tall, this.list.offsetHeight);
  }
}

/** y: middles of the rows X, 1..8, X_next. */
function strands(y, tall) {
  const {stream: S, branch: A, q, k, v} = LANE, lead = tall[0] * 0.32;
  const line = (role, d, extra = "") => `<path class="strand role-${role} ${extra}" d="${d}"/>`;
  const over = (x1, y1, x2, y2) => `M${x1} ${y1} C${x1} ${(y1 + y2) / 2} ${x2} ${(y1 + y2) / 2} ${x2} ${y2}`;
  const out = (from, to) => `M${A} ${from} L${A} ${to - 26} C${A} ${to - 8} ${A - 8} ${to} ${A - 22} ${to} L${S + 9} ${to}`;
  const bend = tall[2] * 0.42;
  const lane = (x, from, to) => `${over(A, from, x, from + bend)} L${x} ${to - bend} C${x} ${to - bend / 2} ${A} ${to - bend / 2} ${A} ${to}`;
  const dot = (stage, x, at, role) => `<circle class="stop role-${role}" data-at="${stage}" cx="${x}" cy="${at}" r="5"/>`;
  const plus = (stage, at) => `<g class="plus" data-at="${stage}"><circle cx="${S}" cy="${at}" r="9"/>` +
    `<path d="M${S - 5} ${at}H${S + 5}M${S} ${at - 5}V${at + 5}"/></g>`;
  const end = y[9] + tall[9] * 0.5 - 3;
  return [
    line("resid", `M${S} ${y[0] - 4} L${S} ${end - 6}`, "thick"),
    `<path class="arrow role-resid" d="M${S - 5} ${end - 8} L${S} ${end} L${S + 5} ${end - 8}"/>`,
    line("resid", over(S, y[0] + lead, A, y[1] - 5) + `L${A} ${y[2]}`),
    line("v", lane(v, y[2], y[5])),
    line("q", lane(q, y[2], y[4])),
    line("k", `M${k} ${y[2]} L${k} ${y[4]}`),
    line("score", `M${A} ${y[4]} L${A} ${y[5]}`),
    line("v", `M${A} ${y[5]} L${A} ${y[6]}`),
    line("attn", out(y[6], y[7])),
    line("resid", over(S, y[7] + lead, A, y[8] - 5)),
    line("ffn", out(y[8], y[9])),
    `<circle class="source" cx="${S}" cy="${y[0] - 4}" r="4"/>`,
    dot(1, A, y[1], "resid"), dot(2, A, y[2], "resid"), dot(3, q, y[3], "q"), dot(3, k, y[3], "k"),
    dot(4, A, y[4], "score"), dot(5, A, y[5], "prob"), dot(6, A, y[6], "attn"), plus(7, y[7]),
    dot(8, A, y[8], "ffn"), plus(8, y[9]),
  ].join("");
}

/** A tensor's last two axes as a few pixels. */
class Thumb {
  constructor(name, quantity) {
    this.own = this.scale = quantity.scale;
    this.canvas = h("canvas", {class: `thumb role-${quantity.role}`, dataset: {thumb: name}, title: quantity.title});
    this.node = h("span", {class: "thumb-box"}, this.canvas);
  }

  update({r, c, v, moved = false, change = false}) {
    this.node.classList.toggle("moved", moved);
    const scale = change ? "signed" : this.own;
    if (v === this.bytes && r === this.r && c === this.c && scale === this.scale) return;
    this.scale = scale;
    if (r !== this.r || c !== this.c) {
      const pixel = Math.max(1, Math.min(13, Math.floor(30 / Math.max(r, c))));
      Object.assign(this.canvas, {width: c, height: r});
      Object.assign(this.canvas.style, {width: `${Math.max(4, c * pixel)}px`, height: `${Math.max(r * pixel, Math.min(14, 7 * r))}px`});
    }
    Object.assign(this, {r, c, bytes: v});
    this.paint();
  }

  paint() {
    const colour = this.r * this.c > 16 ? thumbRgb : cellRgb; // few pixels are as pale as number cells
    const data = atob(this.bytes), context = this.canvas.getContext("2d");
    const image = context.createImageData(this.c, this.r);
    for (let n = 0; n < data.length; n++) {
      const code = (data.charCodeAt(n) << 24) >> 24;
      const [r, g, b] = code === MASKED ? stateColour("future") : code === MISSING ? stateColour("nan")
        : colour(step(code / 126, this.scale, 1), this.scale);
      image.data.set([r, g, b, 255], 4 * n);
    }
    context.putImageData(image, 0, 0);
  }
}
