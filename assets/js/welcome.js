// What a first visitor can do, in two sentences beside the first equation; they go with the first edit there, for good.

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
    this.node = h("p", {class: "welcome", dataset: {welcome: ""}, hidden: true}, texts.welcome);
    this.over = welcomed();
  }

  /** After each picture. Their room stays until the stage is left, so that the first edit moves nothing but numbers. */
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
