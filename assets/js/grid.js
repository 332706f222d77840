// One slice of a matrix as cells that can be typed into. Cells are made once and then only written to.

import {h} from "./dom.js";
import {cellColour, step} from "./colour.js";
import {full, short, signed} from "./format.js";

// Flags of a cell's state character, as the server writes them.
export const FLAG = {masked: 1, padded: 2, edited: 4, changed: 8};
const SPECIAL = {nan: NaN, inf: Infinity, "-inf": -Infinity};

/** One cell: its box, what can be focused in it, and what it shows. */
class Cell {
  constructor(grid, at, index, editable) {
    Object.assign(this, {grid, at, index, editable, x: undefined, flags: -1, dx: undefined, tint: -1, typed: false});
    const common = {dataset: {q: grid.q, i: index.join(",")}, tabindex: "-1", "aria-label": grid.nameOf(index)};
    this.face = editable
      ? h("input", {...common, class: "face", type: "text", inputmode: "decimal", autocomplete: "off", spellcheck: "false"})
      : h("span", {...common, class: "face"});
    this.face.cell = this;
    this.box = h("div", {class: "cell", role: "gridcell"}, this.face);
  }

  get text() {
    return this.editable ? this.face.value : this.face.textContent;
  }

  write(text) {
    if (this.text === text) return;
    this.face.classList.toggle("long", text.length > 8 && document.activeElement !== this.face);
    if (this.editable) this.face.value = text;
    else this.face.textContent = text;
    this.fit();
  }

  /** A long number is set smaller while the focus shows all of it. */
  fit() {
    const {length} = this.text;
    this.face.classList.toggle("wide", length > 7);
    if (length > 7) this.face.style.setProperty("--digits", length);
  }

  /** Show what the server says; a text that is being typed, or is no number, stays. */
  show(x, flags, dx, look) {
    if (!Object.is(x, this.x) || look.compare !== this.compare || dx !== this.dx) {
      Object.assign(this, {x, dx, compare: look.compare});
      if (!this.typed) this.write(document.activeElement === this.face && this.editable ? this.long() : this.brief());
      this.showDelta(look.compare === "both" ? dx : undefined);
    }
    const beyond = look.compare !== "change" && Math.abs(x) > look.range * (1 + 1e-6) && Number.isFinite(x);
    const mark = flags | (beyond ? 16 : 0) | (Number.isNaN(x) ? 32 : Number.isFinite(x) ? 0 : 64);
    if (mark !== this.flags) {
      this.flags = mark;
      this.box.className = className(mark);
    }
    const measured = look.compare === "change" ? dx ?? 0 : x;
    const tint = mark & (1 | 2 | 32 | 64) ? -2 : step(measured, look.scale, look.range);
    if (tint !== this.tint || look.scale !== this.scale) {
      this.tint = tint;
      this.scale = look.scale;
      this.box.style.backgroundColor = tint === -2 ? "" : cellColour(tint, look.scale);
    }
  }

  brief() {
    return this.compare === "change" && this.dx !== undefined && Number.isFinite(this.x) ? signed(this.dx) : short(this.x);
  }

  long() {
    return full(this.x);
  }

  showDelta(dx) {
    if (dx === undefined && !this.delta) return;
    this.delta ??= this.box.appendChild(h("small", {class: "delta", "aria-hidden": "true"}));
    this.delta.textContent = dx ? signed(dx) : "";
    this.delta.hidden = dx === undefined;
  }

  recolour() {
    if (this.tint >= 0) this.box.style.backgroundColor = cellColour(this.tint, this.scale);
  }
}

function className(mark) {
  let name = "cell";
  if (mark & 1) name += " masked";
  if (mark & 2) name += " padded";
  if (mark & 4) name += " edited";
  if (mark & 8) name += " changed";
  if (mark & 16) name += " clipped";
  if (mark & 32) name += " nan";
  if (mark & 64) name += " infinite";
  return name;
}

export class Grid {
  /** panel and slice from the server; names: letter -> word for the labels of cells. */
  constructor(panel, slice, names) {
    Object.assign(this, {q: panel.q, names, letters: panel.axes, symbol: panel.plain});
    const {rows, cols, prefix} = slice, flat = panel.shape.length === 1;
    this.rows = rows;
    this.cols = cols;
    this.cells = [];
    const [rowAxis, colAxis] = flat ? ["", panel.axes[0]] : panel.axes.slice(-2);
    const head = h("div", {role: "row", class: "row"}, h("span", {class: "corner", role: "none", title: this.corner(rowAxis, colAxis)}),
      ...Array.from({length: cols}, (_, c) => h("span", {class: "mark", role: "columnheader", title: `${this.word(colAxis)} ${c}`}, String(c))));
    const body = Array.from({length: rows}, (_, r) => {
      const made = Array.from({length: cols}, (_, c) => new Cell(this, r * cols + c, flat ? [c] : [...prefix, r, c], panel.editable));
      this.cells.push(...made);
      const label = flat ? "" : String(r + (panel.first ?? 0)), named = panel.first ? `${r} (${label})` : label; // a position where tokens are cached
      return h("div", {role: "row", class: "row"}, h("span", {class: "mark head", role: flat ? "none" : "rowheader", title: `${this.word(rowAxis)} ${named}`}, label), ...made.map(m => m.box));
    });
    this.node = h("div", {class: `grid${flat ? " flat" : ""}`, role: "grid", "aria-label": `${panel.title}${slice.label ? ", " + slice.label : ""}`,
      "aria-rowcount": rows + 1, "aria-colcount": cols + 1}, head, ...body);
    this.node.style.setProperty("--cols", cols);
    this.cells[0].face.tabIndex = 0;
    this.active = this.cells[0];
  }

  word(letter) {
    return this.names[letter] ?? letter;
  }

  corner(rowAxis, colAxis) {
    return rowAxis ? `${this.word(rowAxis)} ↓  ${this.word(colAxis)} →` : this.word(colAxis);
  }

  nameOf(index) {
    return `${this.symbol}: ${index.map((i, n) => `${this.word(this.letters[n])} ${i}`).join(", ")}`;
  }

  update(slice, look) {
    const {values, state, special, delta} = slice;
    for (let n = 0; n < this.cells.length; n++) {
      let x = values[n];
      if (x === null) x = SPECIAL[special[n]];
      this.cells[n].show(x, state.charCodeAt(n) - 48, delta ? delta[n] ?? 0 : undefined, look);
    }
  }

  activate(cell) {
    if (this.active === cell) return;
    this.active.face.tabIndex = -1;
    cell.face.tabIndex = 0;
    this.active = cell;
  }

  /** The cell `down` rows and `right` columns away, or undefined at an edge. */
  neighbour(cell, down, right) {
    const r = Math.floor(cell.at / this.cols) + down, c = (cell.at % this.cols) + right;
    return r >= 0 && r < this.rows && c >= 0 && c < this.cols ? this.cells[r * this.cols + c] : undefined;
  }

  recolour() {
    this.cells.forEach(cell => cell.recolour());
  }
}
