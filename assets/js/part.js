// Something the server computes only while somebody looks at it: asked for apart from the picture, never in its way.

import {Wire} from "./wire.js";

const CALM_MS = 180; // after the last change, so that typing is never kept waiting

export class Part {
  /** ask: the server; compose() -> the state's request; extra() -> what this part adds to it; show(data); fail(errors), "" being the part as a whole. */
  constructor({name, node, texts, ask, compose, extra = () => ({}), show, fail}) {
    Object.assign(this, {name, node, texts, compose, extra, show, fail, open: false, near: false});
    this.wire = new Wire({ask, compose: () => ({...compose(), ...extra(), want: [name]}), heard: answer => this.heard(answer), silent: still => still || this.lose()});
    new IntersectionObserver(entries => {
      this.near = entries.at(-1).isIntersecting;
      this.refresh();
    }, {rootMargin: "120px"}).observe(node);
  }

  /** Ask again if what it depends on has changed and somebody looks. */
  refresh() {
    clearTimeout(this.waiting);
    if (!this.open || !this.near) return;
    const key = this.key();
    if (key === this.asked) return;
    this.node.classList.add("waiting");
    this.waiting = setTimeout(() => {
      this.asked = key;
      this.wire.send();
    }, this.asked === undefined ? 0 : CALM_MS);
  }

  /** Everything of the state that can make a difference. */
  key() {
    const {query, preset, spec, edits, switches, slice} = this.compose();
    return JSON.stringify([query, preset, spec, edits, switches, slice.b, this.extra()]);
  }

  /** No answer, after several tries: say so, and ask again when somebody next looks. */
  lose() {
    this.node.classList.remove("waiting");
    this.asked = null;
    this.fail({"": this.texts.gave_up});
  }

  heard(answer) {
    this.node.classList.remove("waiting");
    if (answer.ok) this.show(answer[this.name]);
    else this.fail(answer.errors);
  }
}
