// Ways over the page: down to the ledger, to the settings and back.

import {land} from "./land.js";

const STACKED = "(max-width: 1080px)"; // as in page.css: the panel lies below the matrices

export class Ways {
  constructor({root, header, side, ledger}) {
    Object.assign(this, {root, header, side, ledger, from: null});
  }

  toLedger() {
    const title = this.ledger.node.querySelector("h2");
    title.focus({preventScroll: true});
    land(title);
  }

  /** Beside the matrices the panel opens and closes; below them (a narrow window) the way leads there and back. */
  togglePanel() {
    if (matchMedia(STACKED).matches) return this.toPanel();
    const closed = this.root.classList.toggle("no-side");
    this.header.panel.setAttribute("aria-expanded", String(!closed));
    return undefined;
  }

  toPanel() {
    const {top, bottom} = this.side.getBoundingClientRect();
    if (this.from !== null && top < innerHeight && bottom > 0) return this.back();
    this.from = scrollY;
    this.root.classList.remove("no-side");
    land(this.side);
    this.side.focus({preventScroll: true});
    return undefined;
  }

  back() {
    scrollTo({top: this.from, behavior: "instant"});
    this.from = null;
    this.header.panel.focus({preventScroll: true});
  }
}
