// Short notes over the page: each comes once, and goes by itself or when what it says has ended.

import {CROSS, h, icon, setText} from "./dom.js";

const SHOWN_MS = 8000;
const STAGES = [4, 5]; // where attention is computed
const AGAIN_MS = 2000; // when somebody is still reading

/** A quiet line below the legend: that a number set by hand changes how attention is computed. */
export class PathNote {
  constructor({texts}) {
    this.words = texts.note_explicit;
    this.node = h("p", {class: "path-note", role: "status"});
  }

  /** Takes its note out of what holds now. It comes once, for what was done on this page, and at the stages it is about. */
  take(notes, stage) {
    const holds = notes.includes(this.words), began = holds && this.held === false;
    this.held = holds;
    if (began && !this.told) this.telling = this.told = true;
    if (!holds) this.telling = false;
    setText(this.node, this.telling && STAGES.includes(stage) ? this.words : "");
    return notes.filter(note => note !== this.words);
  }
}

/** Notes lie over the page, so that their coming and going moves nothing, and let every click through. */
export class Notes {
  constructor({texts, quantities}) {
    // These tell of a state, and go with it. The others tell of what happened once.
    Object.assign(this, {texts, quantities, standing: new Set([texts.note_flash]), said: [], shown: [], pointer: [-1, -1]});
    this.node = h("div", {class: "notes", role: "status"});
    document.addEventListener("pointermove", event => { this.pointer = [event.clientX, event.clientY]; }, {passive: true});
  }

  /** notes: what holds now. One that held before comes back only after it has ended. */
  update(notes) {
    const fresh = notes.filter(note => !this.said.includes(note));
    const left = this.shown.filter(note => !fresh.includes(note) && (notes.includes(note) || !this.standing.has(note)));
    this.said = notes;
    if (!fresh.length && left.length === this.shown.length) return;
    this.show([...left, ...fresh]);
    if (fresh.length) this.wait(SHOWN_MS);
  }

  show(notes) {
    this.shown = notes;
    if (!notes.length) {
      clearTimeout(this.timer);
      this.node.replaceChildren();
      return;
    }
    const close = h("button", {type: "button", class: "bare", "aria-label": this.texts.close, title: this.texts.close, onclick: () => this.show([])}, icon(CROSS));
    this.node.replaceChildren(h("div", {}, ...notes.map(note => h("p", {}, this.inSymbols(note)))), close);
  }

  /** "probs[0, 0, 1, 0]" as the page calls it. */
  inSymbols(note) {
    return note.replace(/([\w.]+)\[/g, (found, name) => (Object.hasOwn(this.quantities, name) ? `${this.quantities[name].plain}[` : found));
  }

  wait(time) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => (this.read() ? this.wait(AGAIN_MS) : this.show([])), time);
  }

  /** Whether the pointer rests on the notes, or the focus is in them. */
  read() {
    const {left, right, top, bottom} = this.node.getBoundingClientRect(), [x, y] = this.pointer;
    return this.node.contains(document.activeElement) || (x >= left && x <= right && y >= top && y <= bottom);
  }
}
