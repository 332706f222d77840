// One view an exercise: what is shown, what was answered, and how marks are taken in.

import {h, setHtml} from "./dom.js";
import {short} from "./format.js";
import {Aloud} from "./studio_aloud.js";
import {Mixing} from "./studio_mixing.js";
import {Order} from "./studio_order.js";
import {Choices, Field, form, matrix, Select} from "./studio_parts.js";

const link = (text, onclick, name) => h("button", {type: "button", class: "link", dataset: {studio: name}, onclick}, text);

class Where {
  constructor({options}, help, draft) {
    Object.assign(this, {help});
    this.choices = new Choices({options, label: help.title, chosen: draft ?? null, texts: help.texts});
    this.why = h("p", {class: "studio-why"});
    this.place = h("p", {});
    this.node = form(help.texts.studio_check, () => help.check(this.choices.value), this.choices.node);
    this.node.append(this.why, this.place);
  }

  answer() {
    return this.choices.value;
  }

  take({marks, hints, done, more}) {
    if (!done) return;
    const {texts, visit} = this.help;
    if (this.choices.value === null) this.choices.choose(more.once);
    this.choices.take(marks[0], hints[0]);
    this.choices.close(more.right);
    this.node.button.hidden = true;
    setHtml(this.why, more.why);
    this.place.replaceChildren(link(texts.studio_look_stage.replace("{n}", more.stage), () => visit(more.stage), "look"));
  }
}

class Shapes {
  constructor({given, fields, example}, help, draft = []) {
    const {texts} = help;
    this.fields = fields.map((html, n) => new Field({html, text: draft[n] ?? "", title: example, name: n, wide: true, texts, changed: help.changed}));
    this.foot = h("div", {class: "studio-foot"});
    this.node = form(texts.studio_check, () => help.check(this.answer()), h("p", {class: "studio-given", html: given}), h("p", {class: "quiet"}, example), h("div", {class: "studio-fields"}, ...this.fields.map(f => f.node)));
    this.node.append(this.foot);
    this.foot.append(link(texts.studio_another, () => help.again(1 + Math.floor(Math.random() * 1e5)), "another"));
    this.help = help;
  }

  answer() {
    return this.fields.map(f => f.text);
  }

  take({marks, hints, done, more}) {
    this.fields.forEach((field, n) => field.take(marks[n], hints[n]));
    if (done && more.preset && this.foot.children.length < 2) this.foot.append(link(this.help.texts.studio_look_case, () => this.help.visit(0, more.preset), "look"));
  }
}

class ToyByHand {
  constructor({given, asked, preset}, help, draft = []) {
    const {texts} = help;
    this.fields = [];
    const tables = asked.map(({label, rows, cols, stage}) => h("fieldset", {class: "studio-asked"}, h("legend", {html: label}),
      h("div", {class: "studio-cells"}, ...Array.from({length: rows * cols}, (_, n) => this.cell(label, Math.floor(n / cols), n % cols, draft, help))),
      link(texts.studio_look, () => help.visit(stage, preset), `look-${stage}`)));
    this.node = form(texts.studio_check, () => help.check(this.answer()),
      h("div", {class: "studio-matrices"}, ...given.map(m => matrix(m, texts.studio_given))), h("div", {class: "studio-tables"}, ...tables));
  }

  cell(label, row, column, draft, {texts, changed}) {
    const at = this.fields.length, html = `<span class="unseen">${texts.studio_cell.replace("{label}", label).replace("{row}", row).replace("{column}", column)}</span>`;
    const field = new Field({html, text: draft[at] ?? "", name: at, texts, changed});
    this.fields.push(field);
    return field.node;
  }

  answer() {
    return this.fields.map(f => f.text);
  }

  take({marks, hints}) {
    this.fields.forEach((field, n) => field.take(marks[n], hints[n]));
  }
}

class Offset {
  constructor({options, check, fields, start}, help, draft = {}) {
    const {texts} = help;
    this.help = help;
    this.choices = new Choices({options, label: help.title, chosen: draft.choice ?? null, texts, changed: help.changed});
    this.fields = fields.map((html, n) => new Field({html, text: draft.typed?.[n] ?? start[n], name: `position-${n}`, texts, changed: help.changed}));
    this.table = h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": texts.studio_compute, hidden: true});
    this.second = form(texts.studio_compute, () => help.check({choice: this.choices.value, numbers: this.typed()}), h("p", {}, check), h("div", {class: "studio-row"}, ...this.fields.map(f => f.node)));
    this.second.hidden = true;
    this.node = h("div", {}, form(texts.studio_check, () => help.check({choice: this.choices.value}), this.choices.node), this.second, this.table);
  }

  typed() {
    return this.fields.map(f => f.text);
  }

  answer() {
    return {choice: this.choices.value, typed: this.typed()};
  }

  take({marks, hints, more}) {
    this.choices.take(marks[0], hints[0]);
    if (more.reason) {
      this.second.hidden = false;
      if (marks.length === 1) this.fields[0].input.focus();
    }
    this.fields.forEach((field, n) => field.take(marks[n + 1] === false ? false : null, hints[n + 1] ?? ""));
    this.table.hidden = !more.scores;
    if (more.scores) this.table.replaceChildren(scoreTable(more));
  }
}

function scoreTable({scores, columns}) {
  const cell = x => h("td", {class: "num"}, x), whole = n => String(n).replace("-", "\u2212");
  return h("table", {class: "studio-scores"}, h("thead", {}, h("tr", {}, h("td", {}), ...columns.map(html => h("th", {scope: "col", html})))),
    h("tbody", {}, ...scores.map(({label, m, n, offset, score}) => h("tr", {}, h("th", {scope: "row", html: label}), cell(whole(m)), cell(whole(n)), cell(whole(offset)), cell(short(score))))));
}

class ReadingCode {
  constructor({code, steps, letters, decode, fields, example}, help, draft = {}) {
    const {texts} = help;
    this.steps = steps.map((html, n) => new Select({html, options: letters, chosen: draft.axes?.[n] ?? null, name: `axis-${n}`, texts}));
    this.fields = fields.map((html, n) => new Field({html, text: draft.decode?.[n] ?? "", title: n > 1 ? example : null, name: `decode-${n}`, wide: true, texts, changed: help.changed}));
    this.node = form(texts.studio_check, () => help.check(this.answer()),
      h("div", {class: "studio-two"}, h("pre", {class: "studio-code", tabindex: "0"}, h("code", {}, code)), h("div", {class: "studio-fields"}, ...this.steps.map(s => s.node))),
      h("p", {class: "studio-given", html: decode}), h("div", {class: "studio-fields"}, ...this.fields.map(f => f.node)));
  }

  answer() {
    return {axes: this.steps.map(s => s.value), decode: this.fields.map(f => f.text)};
  }

  take({marks, hints}) {
    [...this.steps, ...this.fields].forEach((part, n) => part.take(marks[n], hints[n]));
  }
}

export const VIEWS = {where: Where, order: Order, shapes: Shapes, toy_by_hand: ToyByHand, offset: Offset, mixing: Mixing, aloud: Aloud, reading_code: ReadingCode};
