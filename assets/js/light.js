// Which cells of the visible matrices belong to the chosen one: marks on number cells, an overlay on heatmaps.

import {h} from "./dom.js";

const key = (q, i) => `${q}:${i.join(",")}`;

/** {"q:i" -> cell} of all number grids; made once for each set of panels. */
function byKey(views) {
  const found = new Map();
  for (const view of views.values()) for (const cell of view.cells) found.set(key(view.q, cell.index), cell);
  return found;
}

export class Light {
  constructor(board) {
    Object.assign(this, {board, marked: new Map(), hot: []});
  }

  /** The number cell of the page that shows q[i], if one does. */
  cell(q, i) {
    if (this.views !== this.board.views) {
      this.views = this.board.views;
      this.cells = byKey(this.views);
    }
    return this.cells.get(key(q, i));
  }

  /** Mark the chosen cell and those it is made from; null takes every mark away. */
  show(inspect) {
    const wanted = new Map();
    for (const [q, i] of inspect?.cells ?? []) {
      const cell = this.cell(q, i);
      if (cell) wanted.set(cell.box, "from");
    }
    const own = inspect && this.cell(inspect.q, inspect.i);
    if (own) wanted.set(own.box, "chosen");
    for (const box of this.marked.keys()) if (!wanted.has(box)) delete box.dataset.lit;
    for (const [box, mark] of wanted) if (box.dataset.lit !== mark) box.dataset.lit = mark;
    this.marked = wanted;
    this.showOnHeat(inspect);
  }

  /** One cell more strongly, as long as something points at its term. */
  point(q, i) {
    for (const box of this.hot) delete box.dataset.hot;
    const cell = q && this.cell(q, i);
    this.hot = cell ? [cell.box] : [];
    if (cell) cell.box.dataset.hot = "";
    for (const heat of this.heats()) heat.overlay?.point(q === heat.panel.q ? heat.placeOf(i) : null);
  }

  * heats() {
    for (const view of this.board.views.values()) for (const slice of view.slices) if (slice.canvas) yield slice;
  }

  /** The heatmap that shows q[i], if one does. */
  heat(q, i) {
    return [...this.heats()].find(heat => heat.panel.q === q && heat.placeOf(i));
  }

  showOnHeat(inspect) {
    for (const heat of this.heats()) {
      const from = (inspect?.cells ?? []).filter(([q]) => q === heat.panel.q).map(([, i]) => heat.placeOf(i)).filter(Boolean);
      const own = inspect?.q === heat.panel.q ? heat.placeOf(inspect.i) : null;
      if (own) heat.at = inspect.i;
      heat.overlay ??= new Overlay(heat);
      heat.overlay.show(from, own);
    }
  }
}

/** Drawn over a heatmap: regions that an edit moved, cells that light up, the chosen cell. */
export class Overlay {
  constructor(heat) {
    this.heat = heat;
    this.canvas = h("canvas", {class: "heat-overlay", "aria-hidden": "true"});
    heat.canvas.after(this.canvas);
    this.from = [];
  }

  show(from, own) {
    const {state, rows, cols} = this.heat.slice, now = JSON.stringify([from, own, rows, cols, this.heat.canvas.style.width]) + state;
    if (now === this.now && !this.target) return;
    Object.assign(this, {now, from, own, target: null});
    this.draw();
  }

  point(place) {
    if (!place && !this.target) return;
    this.target = place;
    this.draw();
  }

  draw() {
    const {rows, cols, state = ""} = this.heat.slice, {canvas} = this;
    const scale = Math.max(1, Math.round((Math.min(2, devicePixelRatio || 1) * parseFloat(this.heat.canvas.style.width)) / cols));
    const tall = Math.max(1, Math.round((scale * cols * parseFloat(this.heat.canvas.style.height)) / (parseFloat(this.heat.canvas.style.width) * rows)));
    Object.assign(canvas, {width: cols * scale, height: rows * tall});
    Object.assign(canvas.style, {width: this.heat.canvas.style.width, height: this.heat.canvas.style.height});
    const pen = canvas.getContext("2d"), style = getComputedStyle(canvas);
    const ink = style.getPropertyValue("--ink"), paper = style.getPropertyValue("--raised");
    const bits = at => state.charCodeAt(at) - 48;
    const every = test => Array.from({length: rows * cols}, (_, at) => at).filter(at => test(at));
    const box = (r, c) => [c * scale, r * tall, scale, tall];
    const line = (inside, colour, width) => border(pen, inside, {rows, cols, scale, tall, colour, width});
    if (this.from.length) {
      const lit = new Set(this.from.map(([r, c]) => r * cols + c));
      pen.fillStyle = paper;
      pen.globalAlpha = 0.5;
      pen.fillRect(0, 0, canvas.width, canvas.height);
      pen.globalAlpha = 1;
      for (const at of lit) pen.clearRect(...box(Math.floor(at / cols), at % cols));
      line(at => lit.has(at), paper, 4);
      line(at => lit.has(at), ink, 2);
    }
    const moved = new Set(state ? every(at => bits(at) & 12) : []);
    if (moved.size && moved.size < rows * cols) line(at => moved.has(at), ink, 1);
    pen.fillStyle = ink;
    for (const at of state ? every(at => bits(at) & 4) : []) corner(pen, ...box(Math.floor(at / cols), at % cols));
    if (this.own) ring(pen, ...box(...this.own), ink, paper);
    if (this.target) ring(pen, ...box(...this.target), style.getPropertyValue("--accent"), paper);
  }
}

/** The outline of a region of cells. */
function border(pen, inside, {rows, cols, scale, tall, colour, width}) {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.beginPath();
  const edge = (x1, y1, x2, y2) => { pen.moveTo(x1 * scale, y1 * tall); pen.lineTo(x2 * scale, y2 * tall); };
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < cols; c++) {
      if (!inside(r * cols + c)) continue;
      if (!r || !inside((r - 1) * cols + c)) edge(c, r, c + 1, r);
      if (r === rows - 1 || !inside((r + 1) * cols + c)) edge(c, r + 1, c + 1, r + 1);
      if (!c || !inside(r * cols + c - 1)) edge(c, r, c, r + 1);
      if (c === cols - 1 || !inside(r * cols + c + 1)) edge(c + 1, r, c + 1, r + 1);
    }
  }
  pen.stroke();
}

function corner(pen, x, y, wide, tall) {
  const size = Math.max(6, Math.min(wide, tall) * 0.6);
  pen.beginPath();
  pen.moveTo(x + wide - size, y);
  pen.lineTo(x + wide, y);
  pen.lineTo(x + wide, y + size);
  pen.fill();
}

function ring(pen, x, y, wide, tall, ink, paper) {
  const grow = Math.max(2, (12 - Math.min(wide, tall)) / 2); // a cell of few pixels gets a ring that can be seen
  for (const [colour, width] of [[paper, 6], [ink, 3]]) {
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.strokeRect(x - grow, y - grow, wide + 2 * grow, tall + 2 * grow);
  }
}
