// Where weights and input come from: what choosing a checkpoint, or typing its text, does to the other fields.

import {h} from "./dom.js";

export const isCheckpoint = weights => String(weights ?? "").startsWith("checkpoint:");

/**
 * A field was typed into. A checkpoint dictates sizes and reads a text, whose rows and tokens then follow (`fit`); the
 * visitor's own sizes are put aside meanwhile. What is typed in one `session` is one step of undo.
 */
export function setField(state, name, typed, startText, session) {
  const was = isCheckpoint(state.spec.weights), is = isCheckpoint(typed);
  if (name === "weights" && was && typed === "toy" && !state.own) {
    state.text = state.spec.text;
    return state.choosePreset("toy");
  }
  state.begin(session);
  if (name === "weights") {
    if (is && !was) state.own = {...state.spec};
    if (was && !is) {
      state.text = state.spec.text;
      state.spec = {...(state.own ?? state.spec), text: "", layer: ""};
      state.own = null;
    }
    if (is) state.spec.text ||= state.text ?? startText(typed);
    state.fit = is;
  }
  if (name === "text") state.fit = true;
  state.setField(name, typed);
  return undefined;
}

/** Texts to try below the text field, each with what to look at. */
export class Examples {
  constructor({examples, texts, choose}) {
    Object.assign(this, {examples, choose});
    this.list = h("ul", {});
    this.look = h("p", {class: "quiet"});
    this.node = h("div", {class: "examples", hidden: true}, h("span", {class: "quiet"}, texts.examples), this.list, this.look);
  }

  update({weights, text}) {
    const offered = this.examples[weights] ?? [];
    this.node.hidden = offered.length === 0;
    if (weights !== this.weights) {
      this.weights = weights;
      this.list.replaceChildren(...offered.map(example => h("li", {}, h("button", {type: "button", dataset: {example: ""}, title: example.look, onclick: () => this.choose(example.text)}, example.text.replaceAll("\n", " ⏎ ")))));
    }
    [...this.list.children].forEach((item, n) => item.firstChild.setAttribute("aria-pressed", String(offered[n].text === text)));
    this.look.textContent = offered.find(example => example.text === text)?.look ?? "";
  }
}

const visible = token => token.replaceAll("\n", "⏎").replace(/^\s+|\s+$/g, spaces => "␣".repeat(Math.min(spaces.length, 3)));

/** The tokens of the batch row in view, with their positions. */
export class Tokens {
  constructor({texts}) {
    this.texts = texts;
    this.list = h("ol", {class: "tokens", "aria-label": texts.tokens_read, tabindex: "0", hidden: true});
  }

  update(tokens) {
    const key = JSON.stringify(tokens ?? null);
    if (key === this.key) return;
    this.key = key;
    this.list.hidden = !tokens;
    this.list.replaceChildren(...(tokens ?? []).map((token, n) => h("li", token ? {} : {class: "pad", title: this.texts.padded}, h("span", {class: "num"}, String(n)), visible(token))));
  }
}
