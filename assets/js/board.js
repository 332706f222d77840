// All matrices of the chosen stage, and everything that typing and moving in them does.

import {h} from "./dom.js";
import {whenThemeChanges} from "./colour.js";
import {full, read} from "./format.js";
import {Panel, signature} from "./panel.js";
import {edge} from "./state.js";

const PATIENCE_MS = 900; // before an unfinished number such as "-" or "1e" is called wrong

const allSelected = face => face.selectionStart === 0 && face.selectionEnd === face.value.length;

export class Board {
  /** changed() asks the server anew; selected(q, index) when a cell gets the focus. */
  constructor({state, names, texts, changed, selected}) {
    Object.assign(this, {state, names, texts, changed, selected, views: new Map(), session: null, resting: false});
    this.node = h("div", {class: "board"});
    this.tip = h("div", {class: "tip", role: "tooltip", hidden: true});
    this.node.addEventListener("focusin", event => this.enter(event.target.cell, event.relatedTarget));
    this.node.addEventListener("focusout", event => this.leave(event.target.cell));
    this.node.addEventListener("input", event => this.typed(event.target.cell));
    this.node.addEventListener("keydown", event => this.key(event, event.target.cell));
    this.node.addEventListener("pointerdown", event => this.pressed(event.target.cell));
    this.node.addEventListener("pointerup", event => this.released(event));
    this.node.addEventListener("dblclick", event => this.rest(false, event.target.cell));
    this.node.addEventListener("pointerover", event => this.hover(event.target.closest?.(".cell")));
    this.node.addEventListener("pointerleave", () => this.hover(null));
    whenThemeChanges(() => this.views.forEach(view => view.recolour()));
  }

  /** Panels as the server sends them; views whose shape is unchanged are written to in place. */
  update(panels, compare) {
    const order = panels.map(signature).join("\n");
    if (order !== this.order) this.build(panels);
    this.order = order;
    panels.forEach(panel => this.views.get(panel.q).update(panel, compare));
  }

  build(panels) {
    const old = this.views;
    this.views = new Map();
    const groups = new Map();
    for (const panel of panels) {
      const key = signature(panel), kept = old.get(panel.q);
      const view = kept?.key === key ? kept : new Panel(panel, this);
      view.key = key;
      this.views.set(panel.q, view);
      if (!groups.has(panel.group)) groups.set(panel.group, []);
      groups.get(panel.group).push(view.node);
      if (view !== kept) this.restore(view);
    }
    this.node.replaceChildren(...[...groups].map(([group, nodes]) => h("section", {class: `group ${group}`},
      h("h2", {}, this.texts[`group_${group}`]), h("div", {class: "panels"}, ...nodes))));
  }

  /** Texts that were no numbers come back when their grid does. */
  restore(view) {
    for (const cell of view.slices.flatMap(slice => slice.cells)) {
      const stray = this.state.stray.get(edge(view.q, cell.index));
      if (stray === undefined) continue;
      cell.write(stray.text);
      cell.typed = true;
      view.complain(cell, stray.message);
    }
  }

  panelOf(cell) {
    return this.views.get(cell.grid.q);
  }

  /** While cells rest, keys are the page's: from Escape, or a click in present mode, until Enter, a double click, or outside present mode any click. */
  rest(on, cell = document.activeElement.cell) {
    this.resting = on;
    if (!cell?.editable || cell.face.readOnly === on) return;
    cell.face.readOnly = on;
    if (on) cell.face.setSelectionRange(0, 0);
    else cell.face.select();
    cell.fresh = !on;
  }

  enter(cell, from) {
    if (!cell) return;
    if (!this.node.contains(from)) this.resting = this.state.present;
    cell.grid.activate(cell);
    this.hover(null);
    this.session = {}; // this visit
    this.placed = false;
    this.before = cell.x;
    if (cell.editable) {
      if (!cell.typed) cell.write(cell.long());
      cell.face.readOnly = !this.resting;
      this.rest(this.resting, cell);
    }
    this.selected(cell.grid.q, cell.index);
  }

  /** Scroll the cell that has the focus out from under what lies over the page's edges, where it reaches below `line`. */
  uncover(line = 0) {
    const box = document.activeElement.cell?.box;
    if (box?.getBoundingClientRect().bottom > line) box.scrollIntoView({block: "nearest", inline: "nearest"});
  }

  leave(cell) {
    if (!cell?.editable) return;
    if (this.state.stray.has(edge(cell.grid.q, cell.index))) this.judge(cell, read(cell.text, this.minusInfinity(cell)));
    else this.settle(cell);
  }

  settle(cell) {
    cell.typed = false;
    cell.write(cell.brief());
  }

  /** Let go of the number that is being typed: what comes now, such as undo, may replace it. */
  release() {
    const {cell} = document.activeElement;
    if (cell && !this.state.stray.has(edge(cell.grid.q, cell.index))) cell.typed = false;
  }

  pressed(cell) {
    if (cell && cell.face !== document.activeElement) this.resting = this.state.present;
    if (cell?.editable && !cell.fresh && document.activeElement === cell.face && cell.text && allSelected(cell.face)) this.placed = true;
  }

  /** A click selects a number that is taken, so that typing replaces it; one into a selected number places the caret. */
  released(event) {
    const cell = event.target.cell;
    if (!cell?.editable || document.activeElement !== cell.face) return;
    if (!this.state.present) this.rest(false, cell);
    if (cell.face.readOnly) return;
    const taken = cell.fresh || (!this.placed && !read(cell.text, this.minusInfinity(cell)).problem);
    cell.fresh = false;
    if (taken && cell.face.selectionStart === cell.face.selectionEnd) cell.face.select();
  }

  minusInfinity(cell) {
    return cell.grid.q === "masked_scores";
  }

  typed(cell) {
    if (!cell) return;
    cell.typed = true;
    cell.fresh = false;
    cell.fit();
    clearTimeout(this.patience);
    const result = read(cell.text, this.minusInfinity(cell));
    if (result.unfinished) {
      this.keep(cell, result);
      const {session} = this;
      this.patience = setTimeout(() => { if (session === this.session) this.judge(cell, result); }, PATIENCE_MS);
      return;
    }
    this.judge(cell, result);
    if (result.problem) return;
    cell.x = Math.fround(result.x);
    this.state.setCell(cell.grid.q, cell.index, result.x, this.session);
    this.changed();
  }

  /** Say what is wrong with a text; what its beginning did to the cell in this visit ("1" of "1/3") is taken back. */
  judge(cell, result) {
    clearTimeout(this.patience);
    if (result.problem) this.takeBack(cell);
    this.say(cell, result);
  }

  takeBack(cell) {
    if (!this.state.takeBack(cell.grid.q, cell.index, this.session)) return;
    cell.x = this.before;
    this.changed();
  }

  /** Remember a text that is no number, so that neither an answer nor a change of stage loses it. */
  keep(cell, result) {
    const message = this.messageOf(cell, result);
    this.state.stray.set(edge(cell.grid.q, cell.index), {text: cell.text, message});
    return message;
  }

  messageOf(cell, {problem}) {
    const given = cell.text.trim().length > 24 ? cell.text.trim().slice(0, 23) + "…" : cell.text.trim();
    const kept = full(Number.isFinite(cell.x) ? Number(cell.x.toPrecision(7)) : cell.x);
    return this.texts[`cell_${problem}`].replace("{given}", () => given).replace("{kept}", kept).replace("{cell}", `${cell.grid.symbol}[${cell.index.join(", ")}]`);
  }

  /** Show or take back the message about a cell's text. */
  say(cell, result) {
    if (!result.problem) this.state.stray.delete(edge(cell.grid.q, cell.index));
    this.panelOf(cell).complain(cell, result.problem ? this.keep(cell, result) : "");
  }

  /** The server's word on an edit that it could not take. */
  refuse(edit, message) {
    const cell = this.views.get(edit.t)?.find(edit.i);
    if (cell) this.views.get(edit.t).complain(cell, message);
    return Boolean(cell);
  }

  /** An accepted answer: nothing that was sent is wrong any more. */
  accept() {
    for (const view of this.views.values()) {
      for (const node of [...view.errors.children]) {
        const cell = view.find(node.dataset.errorFor.split(":")[1].split(",").map(Number));
        const result = cell && this.state.stray.has(node.dataset.errorFor) ? read(cell.text, this.minusInfinity(cell)) : {};
        if (result.problem) this.say(cell, result); // the number that stays may be another one by now
        else if (cell) {
          view.complain(cell, "");
          if (document.activeElement !== cell.face) this.settle(cell);
        } else node.remove();
      }
    }
  }

  key(event, cell) {
    if (!cell || event.isComposing || event.altKey || event.metaKey || event.ctrlKey) return undefined;
    const {face} = cell, {key} = event;
    const whole = !cell.editable || face.readOnly || allSelected(face);
    const moves = {ArrowUp: [-1, 0], ArrowDown: [1, 0], Enter: [event.shiftKey ? -1 : 1, 0]};
    if (whole || (key === "ArrowLeft" && face.selectionEnd === 0)) moves.ArrowLeft = [0, -1];
    if (whole || (key === "ArrowRight" && face.selectionStart === face.value.length)) moves.ArrowRight = [0, 1];
    if (key === "Escape") {
      const counts = this.session && this.state.session === this.session; // an edit of this visit
      if (!cell.typed && !counts && !this.state.stray.has(edge(cell.grid.q, cell.index))) return this.rest(true, cell); // nothing to take back here
      clearTimeout(this.patience);
      this.takeBack(cell);
      this.say(cell, {});
      cell.typed = false;
      cell.write(cell.long());
      face.select?.();
    } else if (key === "Enter" && face.readOnly) this.rest(false, cell);
    else if (key === "Enter" && cell.typed && read(cell.text, this.minusInfinity(cell)).problem) this.commit(cell); // what is refused is not left
    else if (moves[key]) {
      const next = cell.grid.neighbour(cell, ...moves[key]);
      if (next) next.face.focus();
      else if (key === "Enter") this.commit(cell);
    } else return undefined;
    event.preventDefault();
    return event.stopPropagation();
  }

  /** Enter in the last row, or on what is no number: the focus stays; a number is a step of its own. */
  commit(cell) {
    const result = read(cell.text, this.minusInfinity(cell));
    if (result.problem) this.judge(cell, result);
    else {
      cell.typed = false;
      this.session = {};
      this.before = cell.x;
      cell.face.select?.();
    }
  }

  hover(box) {
    const cell = box?.firstElementChild?.cell;
    if (!cell || cell.face === document.activeElement) {
      this.tip.hidden = true;
      return;
    }
    const covered = cell.face.classList.contains("covered"); // a question asks for it
    const words = [cell.grid.nameOf(cell.index), covered ? "= ?" : `= ${cell.long()}`];
    if (cell.dx && !covered) words.push(`${this.texts.change_of} ${cell.dx > 0 ? "+" : ""}${cell.dx}`.replace("-", "\u2212"));
    for (const [flag, key] of [[1, "masked"], [2, "padded"], [4, "edited"], [16, "clipped"]]) if (cell.flags & flag) words.push(this.texts[key]);
    this.tip.replaceChildren(h("span", {}, words[0]), h("b", {class: "num"}, words[1]), ...words.slice(2).map(w => h("span", {}, w)));
    this.tip.hidden = false;
    const at = box.getBoundingClientRect(), size = this.tip.getBoundingClientRect();
    const left = Math.max(8, Math.min(innerWidth - size.width - 8, at.left + at.width / 2 - size.width / 2));
    const top = at.top - size.height - 6 > 56 ? at.top - size.height - 6 : at.bottom + 6;
    Object.assign(this.tip.style, {left: `${left}px`, top: `${top}px`});
  }
}
