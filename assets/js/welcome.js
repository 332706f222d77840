// What a first visitor can do, beside the first equation: first to edit, then to follow the edit; both only once.

import {h} from "./dom.js";

const KEY = "explorer.welcomed";

function welcomed() {
  try {
    return localStorage.getItem(KEY) !== null;
  } catch {
    return false; // a browser that keeps nothing
  }
}

function remember() {
  try {
    localStorage.setItem(KEY, "1");
  } catch { /* greeted again next time */ }
}

export class Welcome {
  constructor({texts}) {
    this.node = h("p", {class: "welcome", role: "status", dataset: {welcome: ""}, hidden: true},
      h("span", {class: "welcome-first"}, texts.welcome), h("span", {class: "welcome-next"}, texts.welcome_next));
    this.over = welcomed();
  }

  /** After each picture. The second hint takes the first one's room, so that the first edit moves nothing but numbers. */
  update({edited, stage}) {
    const {node} = this, shown = !node.hidden;
    if (edited && !this.over) {
      this.over = true;
      node.classList.toggle("done", shown);
      if (shown) remember(); // else a link brought the edit
    }
    node.hidden = stage !== 1 || (this.over && !(shown && node.classList.contains("done")));
  }
}
