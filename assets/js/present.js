// Present mode for a classroom: large type, the map and the stage, everything by keys. Escape leaves it.

import {CROSS, h, icon, setText} from "./dom.js";
import {switchWords} from "./whatif.js";

const HINT_MS = 5000;

export class Present {
  /** root: the page's element; changed(on) when the visitor enters or leaves. */
  constructor({root, texts, changed}) {
    Object.assign(this, {root, texts, changed, on: false});
    this.hint = h("p", {class: "present-hint", role: "status"});
    this.words = texts.present_hint;
    this.leave = h("button", {type: "button", class: "bare present-leave", dataset: {act: "leave"}, "aria-label": texts.present_leave, title: texts.present_leave, onclick: () => this.set(false)}, icon(CROSS));
    this.force = h("p", {class: "present-force"});
    root.append(this.hint, this.leave);
    root.querySelector(".stage-top").append(this.force);
  }

  toggle() {
    this.set(!this.on);
  }

  set(on) {
    const held = document.activeElement;
    this.show(on);
    if (!held.checkVisibility()) this.root.querySelector(on ? "h1" : "[data-act=present]").focus({preventScroll: true});
    this.changed(on);
  }

  /** What differs from the plain model, as the panel that lists it is not seen: edits, and switches in force. */
  tell({edits, switches}) {
    const n = edits.filter(edit => edit.on).length, {texts} = this;
    const all = [...switches.map(name => switchWords(name, texts)), ...(n ? [texts.present_edits.replace("{n}", n)] : [])];
    setText(this.force, all.length ? texts.present_force.replace("{what}", all.join(" · ")) : "");
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
