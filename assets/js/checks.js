// Two calculations to try: LayerNorm beside RMSNorm (stage 1) and the softmax of a row (stage 5).

import {h, icon, setHtml, setText} from "./dom.js";
import {cellColour, step, whenThemeChanges} from "./colour.js";
import {FigureBoard} from "./figure.js";
import {fold} from "./fold.js";
import {short} from "./format.js";
import {Part} from "./part.js";

const MOST_BUTTONS = 16; // tokens beyond that are chosen from a list
const SPECIAL = {nan: NaN, inf: Infinity, "-inf": -Infinity};
const number = x => (typeof x === "string" ? SPECIAL[x] : x);

/** A small table of numbers on tinted cells; rows: [{head, cells, scale, range, text}] of equal length. */
class Table {
  constructor(label) {
    this.body = h("tbody", {});
    this.node = h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": label}, h("table", {class: "trial-table", "aria-label": label}, this.body));
    this.rows = [];
    whenThemeChanges(() => this.paint());
  }

  update(rows) {
    if (rows.length !== this.body.children.length || rows[0].cells.length !== this.cols) {
      this.cols = rows[0].cells.length;
      this.body.replaceChildren(...rows.map(row => h("tr", {}, h("th", {scope: "row", html: row.head}), ...row.cells.map(() => h("td", {class: "num"})), row.sum === undefined ? null : h("td", {class: "num sum"}))));
    }
    this.rows = rows;
    rows.forEach((row, n) => {
      const cells = [...this.body.children[n].children].slice(1);
      row.cells.forEach((x, at) => setText(cells[at], typeof x === "string" && !(x in SPECIAL) ? x.replace("-", "\u2212") : short(number(x))));
      if (row.sum !== undefined) setText(cells.at(-1), row.sum);
    });
    this.paint();
  }

  paint() {
    this.rows.forEach((row, n) => row.cells.forEach((given, at) => {
      const cell = this.body.children[n].children[at + 1], x = number(given);
      cell.classList.toggle("hidden-key", x === -Infinity);
      cell.style.backgroundColor = !row.scale || !Number.isFinite(x) ? "" : cellColour(step(x, row.scale, row.range), row.scale);
    }));
  }
}

/** The sentences below a trial. */
class Sentences {
  constructor() {
    this.node = h("div", {class: "facts"});
  }

  update(sentences) {
    while (this.node.children.length > sentences.length) this.node.lastChild.remove();
    while (this.node.children.length < sentences.length) this.node.append(h("p", {}));
    sentences.forEach((text, n) => setHtml(this.node.children[n], text));
  }
}

/** A line to type numbers into, with its message. */
function line(name, {label, hint, placeholder = "", changed, wide = false}) {
  const id = `trial-${name.replace(".", "-")}`;
  const input = h("input", {type: "text", id, autocomplete: "off", spellcheck: "false", placeholder, title: hint, dataset: {trial: name}, "aria-describedby": `${id}-error`});
  const error = h("p", {class: "error", id: `${id}-error`, role: "alert", dataset: {errorFor: name}});
  input.addEventListener("input", changed);
  return {
    name, input, error, node: h("div", {class: `trial-line${wide ? " wide" : ""}`}, h("label", {for: id}, label), input), get text() { return input.value; },
    complain(message = "") {
      setText(error, message);
      if (message) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    },
  };
}

export class NormTrial {
  constructor({texts, ask, compose, plotly}) {
    this.texts = texts;
    this.token = 0;
    const changed = () => this.part.refresh();
    this.picker = h("div", {class: "segments small", role: "group", "aria-label": texts.norms_token});
    this.gamma = line("norms.gamma", {label: texts.norms_gamma, hint: texts.norms_gamma_hint, placeholder: "1", changed: () => { this.own.checked = false; changed(); }});
    this.beta = line("norms.beta", {label: texts.norms_beta, hint: texts.norms_beta_hint, placeholder: "0", changed});
    this.own = h("input", {type: "checkbox", dataset: {trial: "norms.own"}, onchange: changed});
    this.table = new Table(texts.norms);
    this.note = h("p", {class: "quiet"});
    this.sentences = new Sentences();
    this.error = h("p", {class: "error", role: "alert", dataset: {errorFor: "norms.row"}});
    this.figures = new FigureBoard({address: plotly});
    this.node = fold("norms", {open: true, title: texts.norms, class: "folded trial", dataset: {trialOf: "norms"}, hidden: true},
      h("p", {class: "lead"}, texts.norms_lead),
      h("div", {class: "trial-bar"}, this.picker, this.gamma.node, h("label", {class: "tick"}, this.own, texts.norms_own), this.beta.node),
      this.gamma.error, this.beta.error, this.error,
      this.table.node, this.note, h("div", {class: "trial-body"}, this.sentences.node, this.figures.node));
    const extra = () => ({norms: {t: this.token, gamma: this.own.checked ? "block" : this.gamma.text, beta: this.beta.text}});
    this.part = new Part({name: "norms", node: this.node, texts, ask, compose, extra, show: found => this.show(found), fail: errors => this.fail(errors)});
    this.node.addEventListener("toggle", () => this.look());
  }

  look(stage = this.stage) {
    this.stage = stage;
    this.node.hidden = stage !== 1;
    this.part.open = this.node.open && !this.node.hidden;
    this.part.refresh();
  }

  fail(errors) {
    this.gamma.complain(errors["norms.gamma"]);
    this.beta.complain(errors["norms.beta"]);
    setText(this.error, errors["norms.row"] ?? errors[""] ?? "");
  }

  show({token, tokens, past, note, rows, sentences, figure}) {
    this.fail({});
    this.pick(token, tokens, past);
    const range = Math.max(...rows.flat().map(x => Math.abs(number(x))).filter(Number.isFinite), 1e-12);
    const heads = [`<i>${this.texts.norms_given}</i>`, this.texts.norms_rms, this.texts.norms_layer];
    this.table.update(rows.map((cells, n) => ({head: heads[n], cells, scale: "signed", range})));
    setText(this.note, note);
    this.sentences.update(sentences);
    this.figures.update([figure]);
  }

  pick(token, tokens, past) {
    this.token = token;
    const key = `${tokens}+${past}`;
    if (key !== this.key) {
      this.key = key;
      const choose = t => { this.token = t; this.mark(); this.part.refresh(); };
      const word = h("span", {class: "segments-label"}, this.texts.norms_token);
      if (tokens <= MOST_BUTTONS) {
        this.buttons = Array.from({length: tokens}, (_, t) => h("button", {type: "button", dataset: {normToken: t}, onclick: () => choose(t)}, String(past + t)));
        this.picker.replaceChildren(word, ...this.buttons);
      } else {
        this.buttons = [];
        this.select = h("select", {"aria-label": this.texts.norms_token, onchange: event => choose(Number(event.target.value))}, ...Array.from({length: tokens}, (_, t) => h("option", {value: t}, String(past + t))));
        this.picker.replaceChildren(word, this.select);
      }
    }
    this.mark();
  }

  mark() {
    this.buttons.forEach((b, t) => b.setAttribute("aria-pressed", String(t === this.token)));
    if (!this.buttons.length) this.select.value = String(this.token);
  }
}

export class SoftmaxTrial {
  constructor({texts, ask, compose, row}) {
    Object.assign(this, {texts, course: row});
    this.row = line("softmax.row", {label: texts.softmax_row, hint: texts.softmax_hint, placeholder: row, wide: true, changed: () => this.changed()});
    this.row.input.value = row;
    this.back = h("button", {type: "button", class: "link", onclick: () => { this.row.input.value = row; this.changed(); }}, texts.softmax_course);
    this.table = new Table(texts.softmax);
    this.sentences = new Sentences();
    this.node = fold("softmax", {open: true, title: texts.softmax, class: "folded trial", dataset: {trialOf: "softmax"}, hidden: true},
      h("div", {class: "trial-bar"}, this.row.node, this.back), this.row.error, h("p", {class: "quiet"}, texts.softmax_hint), this.table.node, this.sentences.node);
    const alone = () => ({lang: compose().lang}); // the run has no part in it, not even one that is refused
    this.part = new Part({name: "softmax", node: this.node, texts, ask, compose: alone, extra: () => ({softmax: {row: this.row.text}}), show: found => this.show(found), fail: errors => this.row.complain(errors["softmax.row"] ?? errors[""])});
    this.part.key = () => this.row.text;
    this.node.addEventListener("toggle", () => this.look());
    this.changed();
  }

  look(stage = this.stage) {
    this.stage = stage;
    this.node.hidden = stage !== 5;
    this.part.open = this.node.open && !this.node.hidden;
    this.part.refresh();
  }

  changed() {
    this.back.hidden = this.row.text === this.course;
    this.part.refresh();
  }

  show({scores, exponentials, total, shares, rounded, rounded_total: roundedTotal, sentences}) {
    const {texts} = this, finite = scores.map(number).filter(Number.isFinite);
    this.row.complain();
    this.table.update([
      {head: texts.softmax_score, cells: scores, scale: "signed", range: Math.max(...finite.map(Math.abs), 1e-12), sum: ""},
      {head: texts.softmax_exponential, cells: exponentials, scale: "unit", range: 1, sum: short(total)},
      {head: texts.softmax_share, cells: shares, scale: "unit", range: 1, sum: total ? "1" : "0"},
      {head: texts.softmax_rounded, cells: rounded, sum: roundedTotal},
    ]);
    this.sentences.update(sentences);
  }
}

const DOWN = "M10 3.5V12M6.5 8.8L10 12.3L13.5 8.8M4 16H16";

/** A button that hands over the course's model as a file. */
export function courseDownload({texts, ask}) {
  const give = async () => {
    const answer = JSON.parse(await ask(JSON.stringify({want: ["course"]})));
    const {name, text} = answer.course, address = URL.createObjectURL(new Blob([text], {type: "text/x-python"}));
    h("a", {href: address, download: name}).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  };
  return h("button", {type: "button", class: "link course-download", title: texts.course_hint, dataset: {act: "course"}, onclick: give}, icon(DOWN), texts.course_download);
}
