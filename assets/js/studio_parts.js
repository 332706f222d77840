// What the exercises are made of: answers to choose from, fields to type into, lists to choose from, marks in words.

import {h, setHtml, setText} from "./dom.js";

let numbered = 0; // ids of labels and hints on one page
export const fresh = () => `studio-${(numbered += 1)}`;

/** A word and a sign beside what is marked; right: true, false, or null for nothing to say. */
export class Mark {
  constructor(texts) {
    this.texts = texts;
    this.node = h("span", {class: "studio-mark"});
  }

  set(right, word = this.texts[right ? "studio_right" : "studio_wrong"]) {
    this.node.className = `studio-mark ${right === null ? "" : right ? "right" : "wrong"}`;
    setText(this.node, right === null ? "" : `${right ? "\u2713" : "\u2717"} ${word}`);
  }
}

/** A form whose button asks for marks; Enter in a field does so too. */
export function form(label, submit, ...children) {
  const button = h("button", {type: "submit", class: "plain go"}, label);
  const node = h("form", {class: "studio-form", onsubmit: event => { event.preventDefault(); submit(); }}, ...children, button);
  return Object.assign(node, {button});
}

/** One line to type into, with its label, mark and hint. */
export class Field {
  constructor({html, text = "", title = null, wide = false, name = null, texts, changed = () => {}}) {
    const id = fresh();
    this.mark = new Mark(texts);
    this.hint = h("p", {class: "studio-hint", id: `${id}-hint`});
    this.input = h("input", {type: "text", id, autocomplete: "off", autocapitalize: "off", spellcheck: "false", title, dataset: name === null ? {} : {answer: name}, "aria-describedby": `${id}-hint`, value: text});
    this.input.addEventListener("input", () => { this.take(null); changed(); });
    this.node = h("div", {class: `studio-field${wide ? " wide" : ""}`}, h("label", {for: id, html}), this.input, this.mark.node, this.hint);
  }

  get text() {
    return this.input.value;
  }

  take(right, hint = "") {
    this.mark.set(right);
    setHtml(this.hint, hint);
    if (right === false) this.input.setAttribute("aria-invalid", "true");
    else this.input.removeAttribute("aria-invalid");
  }
}

/** The same for one of a few words. */
export class Select {
  constructor({html, options, chosen = null, name, texts}) {
    const id = fresh();
    this.mark = new Mark(texts);
    this.hint = h("p", {class: "studio-hint", id: `${id}-hint`});
    this.input = h("select", {id, dataset: {answer: name}, "aria-describedby": `${id}-hint`}, h("option", {value: ""}, texts.studio_choose), ...options.map((option, n) => h("option", {value: n, selected: n === chosen, html: option})));
    this.input.addEventListener("change", () => this.take(null));
    this.node = h("div", {class: "studio-field"}, h("label", {for: id, html}), this.input, this.mark.node, this.hint);
  }

  get value() {
    return this.input.value === "" ? null : Number(this.input.value);
  }

  take(right, hint = "") {
    this.mark.set(right);
    setHtml(this.hint, hint);
  }
}

/** Answers of which one is chosen; marked one after another. */
export class Choices {
  constructor({options, label, chosen = null, texts, changed = () => {}}) {
    const group = fresh();
    this.texts = texts;
    this.rows = options.map((option, n) => {
      const input = h("input", {type: "radio", name: group, value: n, checked: n === chosen, dataset: {answer: n}, "aria-describedby": `${group}-${n}`, onchange: changed});
      const mark = new Mark(texts), hint = h("p", {class: "studio-hint", id: `${group}-${n}`});
      return {input, mark, hint, node: h("div", {class: "studio-choice"}, h("label", {}, input, h("span", {html: option})), mark.node, hint)};
    });
    this.node = h("fieldset", {class: "studio-choices"}, h("legend", {class: "unseen", html: label}), ...this.rows.map(row => row.node));
  }

  get value() {
    const at = this.rows.findIndex(row => row.input.checked);
    return at < 0 ? null : at;
  }

  choose(n) {
    if (this.rows[n]) this.rows[n].input.checked = true;
  }

  /** Mark the chosen one; the others keep what was said of them. */
  take(right, hint) {
    const row = this.rows[this.value];
    if (!row) return;
    row.mark.set(right, right ? undefined : this.texts.studio_missed);
    setHtml(row.hint, hint);
  }

  /** Say which one it is and take no more answers. */
  close(right) {
    this.rows[right]?.mark.set(true, this.value === right ? undefined : this.texts.studio_it_is);
    for (const {input} of this.rows) input.disabled = true;
  }
}

/** A small matrix of given numbers. */
export function matrix({symbol, rows}, label) {
  return h("figure", {class: "studio-matrix"}, h("figcaption", {html: symbol}),
    h("table", {"aria-label": label}, h("tbody", {}, ...rows.map(row => h("tr", {}, ...row.map(x => h("td", {class: "num"}, x)))))));
}
