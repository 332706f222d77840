// Present mode for a classroom: large type, the map and the stage, everything by keys. Escape leaves it.

import {CROSS, h, icon} from "./dom.js";

const HINT_MS = 5000;

export class Present {
  /** root: the page's element; changed(on) when the visitor enters or leaves. */
  constructor({root, texts, changed}) {
    Object.assign(this, {root, changed, on: false});
    this.hint = h("p", {class: "present-hint", role: "status"});
    this.words = texts.present_hint;
    this.leave = h("button", {type: "button", class: "bare present-leave", dataset: {act: "leave"}, "aria-label": texts.present_leave, title: texts.present_leave, onclick: () => this.set(false)}, icon(CROSS));
    root.append(this.hint, this.leave);
  }

  toggle() {
    this.set(!this.on);
  }

  set(on) {
    this.show(on);
    this.changed(on);
  }

  /** What a link or an answer says. */
  show(on) {
    if (on === this.on) return;
    this.on = on;
    this.root.classList.toggle("present", on);
    clearTimeout(this.fading);
    this.hint.textContent = on ? this.words : "";
    if (on) this.fading = setTimeout(() => { this.hint.textContent = ""; }, HINT_MS);
    dispatchEvent(new Event("resize")); // figures follow their new width
  }
}
