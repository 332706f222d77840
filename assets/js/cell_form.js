// Any cell by its index: choose it, put a number into it. Works where no number grid is shown.

import {h, setText} from "./dom.js";
import {precise, read} from "./format.js";

export class CellForm {
  /** act: {choose(q, i), set(q, i, x)}; about(q) -> {plain, title, axes}; names: axis letter -> word. */
  constructor({texts, about, names, letters, act}) {
    Object.assign(this, {texts, about, names, letters, act, fields: []});
    this.quantity = h("select", {name: "cell-quantity", "aria-label": texts.set_quantity, onchange: () => this.jump()});
    this.places = h("span", {class: "set-places"});
    this.value = h("input", {name: "cell-value", type: "text", inputmode: "decimal", autocomplete: "off", spellcheck: "false", "aria-label": texts.set_value, "aria-describedby": "set-error"});
    this.value.addEventListener("input", () => { this.typing = true; if (!this.misplaced()) this.complain(""); });
    this.value.addEventListener("blur", () => { this.typing = false; });
    this.error = h("p", {class: "error", role: "alert", id: "set-error", dataset: {errorFor: "cell"}});
    this.node = h("form", {class: "set-cell", "aria-label": texts.set_cell, onsubmit: event => { event.preventDefault(); this.set(); }},
      this.quantity, this.places, h("span", {class: "set-to", "aria-hidden": "true"}, "="), this.value,
      h("button", {type: "submit", class: "plain", dataset: {act: "set-cell"}}, texts.set), this.error);
  }

  /** Follow the chosen cell; what is being typed stays. */
  update(inspect) {
    const {q, i, choices, sizes, x} = inspect, order = choices.join();
    if (order !== this.order) {
      this.order = order;
      this.quantity.replaceChildren(...choices.map(name => h("option", {value: name}, `${this.about(name).plain}  ${this.about(name).title}`)));
    }
    this.sizes = sizes;
    if (q !== this.q) {
      this.q = q;
      this.quantity.value = q;
      this.fields = this.about(q).axes.map((letter, n) => this.field(letter, n));
      this.places.replaceChildren(...this.fields.map(f => f.node));
    }
    const moved = i.join() !== this.i?.join();
    this.i = i;
    this.fields.forEach((field, n) => { if (moved || (document.activeElement !== field.input && !field.input.hasAttribute("aria-invalid"))) field.input.value = String(i[n]); });
    if (moved) this.complain("");
    if (!this.typing) this.value.value = precise(x);
  }

  field(letter, n) {
    const word = this.names[letter] ?? letter;
    const input = h("input", {name: `cell-${n}`, type: "text", inputmode: "numeric", autocomplete: "off", "aria-label": word, "aria-describedby": "set-error"});
    input.addEventListener("input", () => this.jump());
    input.addEventListener("blur", () => { if (!this.error.textContent) input.value = String(this.i[n]); });
    input.addEventListener("keydown", event => {
      const by = {ArrowUp: 1, ArrowDown: -1}[event.key];
      if (!by) return;
      event.preventDefault();
      const next = Number(input.value) + by;
      if (!(next >= 0 && next < this.sizes[letter])) return;
      input.value = String(next);
      this.jump();
    });
    return {letter, word, input, node: h("label", {class: "set-place", title: word}, h("span", {class: "sym", html: this.letters[letter]}), input)};
  }

  /** Go to the cell that the fields name, or say which of them names none. */
  jump() {
    const q = this.quantity.value;
    if (q !== this.q) {
      this.act.choose(q, this.named());
      return;
    }
    if (this.misplaced()) return;
    this.complain("");
    this.act.choose(q, this.named());
  }

  /** The index that the fields name; for a quantity that was chosen just now, one near it. */
  named() {
    const q = this.quantity.value;
    return q === this.q ? this.fields.map(f => Number(f.input.value)) : this.about(q).axes.map(letter => this.near(letter));
  }

  /** The first field that names no place, once that is said beside it. */
  misplaced() {
    const wrong = this.fields.find(({letter, input}) => !(/^\d+$/.test(input.value.trim()) && Number(input.value) < this.sizes[letter]));
    this.fields.forEach(({input}) => input.toggleAttribute("aria-invalid", false));
    if (!wrong) return null;
    wrong.input.setAttribute("aria-invalid", "true");
    this.complain(this.texts.set_index.replace("{axis}", wrong.word).replace("{last}", this.sizes[wrong.letter] - 1).replace("{given}", wrong.input.value.trim()));
    return wrong;
  }

  /** The index that another quantity's field starts with: the present one where an axis stays the same. */
  near(letter) {
    const field = this.fields.find(f => f.letter === letter || f.letter[0] === letter[0] && "BHT".includes(letter[0]));
    const at = Number(field?.input.value ?? 0);
    return Number.isInteger(at) && at >= 0 && at < this.sizes[letter] ? at : 0;
  }

  set() {
    const wrong = this.quantity.value === this.q && this.misplaced(); // nothing is written to a cell that is not named
    if (wrong) return wrong.input.focus();
    const {problem, x} = read(this.value.value, this.quantity.value === "masked_scores");
    if (problem) {
      const given = this.value.value.trim();
      this.complain(this.texts[`set_${problem}`].replace("{given}", given.length > 24 ? given.slice(0, 23) + "…" : given), this.value);
      return undefined;
    }
    this.complain("");
    this.typing = false;
    return this.act.set(this.quantity.value, this.named(), x);
  }

  complain(message, input) {
    setText(this.error, message);
    if (input) input.setAttribute("aria-invalid", "true");
    else if (!message) [this.value, ...this.fields.map(f => f.input)].forEach(field => field.removeAttribute("aria-invalid"));
  }
}
