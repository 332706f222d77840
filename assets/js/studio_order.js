// A list to put in order: by its arrows, by arrow keys, or by dragging.

import {h, icon, setText} from "./dom.js";
import {form, Mark} from "./studio_parts.js";

const UP = "M5 12L10 7L15 12", DOWN = "M5 8L10 13L15 8";

export class Order {
  /** items: HTML; the answer is their numbers in the order in which they stand. */
  constructor({items}, help, draft) {
    this.help = help;
    this.list = h("ol", {class: "studio-order", "aria-label": help.texts.studio_order});
    this.said = h("p", {class: "unseen", role: "status"});
    const rows = items.map((item, n) => this.row(item, n));
    this.list.append(...(draft?.length === rows.length ? draft.map(n => rows[n]) : rows));
    this.node = form(help.texts.studio_check, () => help.check(this.answer()), this.list, this.said);
    this.number();
  }

  row(item, n) {
    const {texts} = this.help, title = h("span", {html: item}).textContent, mark = new Mark(texts);
    const step = (by, path, words) => h("button", {type: "button", class: "bare", dataset: {move: by}, "aria-label": words.replace("{title}", title), title: words.replace("{title}", title), onclick: event => this.move(row, by, event.currentTarget)}, icon(path));
    const handle = h("button", {type: "button", class: "studio-item", dataset: {item: n}, html: item});
    const place = h("span", {class: "studio-place num", "aria-hidden": "true"});
    const row = h("li", {draggable: "true"}, place, handle, mark.node, h("span", {class: "studio-moves"}, step(-1, UP, texts.studio_up), step(1, DOWN, texts.studio_down)));
    Object.assign(row, {item: n, place, mark, title: "", words: title});
    handle.addEventListener("keydown", event => {
      const by = {ArrowUp: -1, ArrowDown: 1}[event.key];
      if (!by) return;
      event.preventDefault();
      this.move(row, by, handle);
    });
    row.addEventListener("dragstart", event => { this.dragged = row; event.dataTransfer.effectAllowed = "move"; row.classList.add("dragged"); });
    row.addEventListener("dragend", () => { row.classList.remove("dragged"); this.dragged = null; });
    row.addEventListener("dragover", event => this.over(event, row));
    return row;
  }

  over(event, row) {
    const {dragged} = this;
    if (!dragged) return;
    event.preventDefault();
    if (dragged === row) return;
    const {top, height} = row.getBoundingClientRect();
    row[event.clientY < top + height / 2 ? "before" : "after"](dragged);
    this.moved(dragged);
  }

  move(row, by, keep) {
    const other = by < 0 ? row.previousElementSibling : row.nextElementSibling;
    if (!other) return;
    other[by < 0 ? "before" : "after"](row);
    keep.focus(); // moving a node drops the focus
    this.moved(row);
  }

  moved(row) {
    const {texts, changed} = this.help, rows = [...this.list.children];
    rows.forEach(each => each.mark.set(null));
    this.number();
    setText(this.said, texts.studio_place.replace("{title}", row.words).replace("{n}", rows.indexOf(row) + 1).replace("{all}", rows.length));
    changed();
  }

  number() {
    const rows = [...this.list.children];
    rows.forEach((row, n) => {
      setText(row.place, String(n + 1));
      const [up, down] = row.querySelectorAll("[data-move]");
      up.setAttribute("aria-disabled", String(n === 0));
      down.setAttribute("aria-disabled", String(n === rows.length - 1));
    });
  }

  answer() {
    return [...this.list.children].map(row => row.item);
  }

  take({marks}) {
    [...this.list.children].forEach((row, n) => row.mark.set(marks[n]));
  }
}
