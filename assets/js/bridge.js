// From the course's block to MiniMind: six rows, and the check of each, run on the block that is shown.

import {h, setText} from "./dom.js";
import {fold} from "./fold.js";
import {Part} from "./part.js";
import {Wire} from "./wire.js";

/** One row: what it adds, its lines of code, the button, and what the check found. */
class Row {
  constructor({number, title, adds, check, slow, code}, texts, run) {
    Object.assign(this, {number, slow, texts});
    this.button = h("button", {type: "button", class: "plain", dataset: {bridgeRun: number}, "aria-label": texts.bridge_run_row.replace("{title}", title), onclick: () => run(number)}, texts.bridge_run);
    this.verdict = h("p", {class: "bridge-verdict", role: "status", dataset: {bridgeVerdict: number}});
    this.error = h("p", {class: "error", dataset: {errorFor: `bridge.${number}`}});
    this.points = h("ul", {class: "bridge-points"});
    const lines = h("details", {class: "bridge-code"}, h("summary", {}, texts.bridge_code), h("div", {class: "code-columns"}, ...code.map(({name, file, line, text}) => h("figure", {},
      h("figcaption", {}, h("b", {}, name), h("span", {}, texts.code_line.replace("{file}", file).replace("{line}", line))),
      h("pre", {tabindex: "0"}, h("code", {}, text))))));
    this.node = h("li", {class: "bridge-row", dataset: {bridgeRow: number}},
      h("h3", {}, title), h("p", {html: adds}), h("p", {class: "bridge-check"}, h("b", {}, `${texts.bridge_check} `), h("span", {html: check})), lines,
      h("div", {class: "bridge-act"}, this.button, this.verdict), this.error, this.points);
  }

  /** Asked, or in line; not disabled, which would drop the focus. */
  wait(on) {
    this.node.classList.toggle("busy", on);
    this.button.setAttribute("aria-disabled", String(on));
    if (on) this.say(this.slow ? this.texts.bridge_slow : this.texts.computing, "");
    if (on) this.error.textContent = "";
  }

  say(text, state) {
    setText(this.verdict, text);
    this.node.dataset.state = state;
  }

  show({holds, points}, key) {
    const {texts} = this;
    this.key = key;
    this.holds = holds;
    this.points.replaceChildren(...points.map(point => h("li", {class: point.holds ? "held" : "failed", dataset: {point: point.key}},
      h("span", {class: "bridge-mark"}, point.holds ? texts.bridge_held : texts.bridge_failed),
      h("span", {}, point.nearest ? h("em", {class: "bridge-nearest"}, texts.bridge_nearest) : null, h("span", {html: point.text})))));
    this.say(holds ? texts.bridge_holds : texts.bridge_fails, holds ? "held" : "failed");
    setText(this.button, texts.bridge_again);
  }

  fail(message) {
    this.key = undefined;
    this.points.replaceChildren();
    this.say("", "");
    setText(this.error, message);
  }

  /** What was found belongs to another state than `key`. */
  age(key) {
    if (this.key === undefined || this.node.classList.contains("busy")) return;
    const stale = this.key !== key;
    this.node.classList.toggle("stale", stale);
    const said = this.texts[this.holds ? "bridge_holds" : "bridge_fails"];
    this.say(stale ? `${said} ${this.texts.bridge_stale}` : said, stale ? "stale" : this.holds ? "held" : "failed");
  }
}

export class Bridge {
  constructor({texts, ask, compose}) {
    Object.assign(this, {texts, compose, rows: [], waiting: [], running: null});
    this.list = h("ol", {class: "bridge-rows"});
    this.all = h("button", {type: "button", class: "plain", dataset: {bridge: "all"}, onclick: () => this.run(...this.rows.map(row => row.number))}, texts.bridge_all);
    this.sum = h("p", {class: "quiet", role: "status", dataset: {bridge: "sum"}});
    this.error = h("p", {class: "error", role: "alert", dataset: {errorFor: "bridge"}});
    this.node = fold("bridge", {title: texts.bridge, class: "folded bridge", dataset: {bridge: ""}},
      h("p", {class: "lead"}, texts.bridge_lead), h("div", {class: "bridge-act"}, this.all, this.sum), this.error, this.list);
    const alone = () => ({lang: compose().lang}); // the rows are the same for every run
    this.part = new Part({name: "bridge", node: this.node, texts, ask, compose: alone, show: found => this.build(found), fail: errors => setText(this.error, errors.bridge ?? errors[""] ?? "")});
    this.part.key = () => "rows";
    this.wire = new Wire({ask, compose: () => this.question(), heard: answer => this.heard(answer), silent: still => this.silent(still)});
    this.node.addEventListener("toggle", () => this.look());
    this.look();
  }

  build({rows}) {
    setText(this.error, "");
    this.rows = rows.map(about => new Row(about, this.texts, number => this.run(number)));
    this.list.replaceChildren(...this.rows.map(row => row.node));
  }

  /** After each picture: what was found for another state is marked. */
  look() {
    this.part.open = this.node.open;
    this.part.refresh();
    this.age();
  }

  age() {
    const key = this.key();
    for (const row of this.rows) row.age(key);
    this.count(key);
  }

  /** Everything of the state that a check can depend on. */
  key() {
    const {query, preset, spec, edits, switches} = this.compose();
    return JSON.stringify([query, preset, spec, edits, switches]);
  }

  run(...numbers) {
    const fresh = numbers.filter(number => number !== this.running && !this.waiting.includes(number));
    for (const number of fresh) this.rows[number - 1].wait(true);
    this.waiting.push(...fresh);
    if (this.running === null) this.next();
  }

  next() {
    this.running = this.waiting.shift() ?? null;
    if (this.running !== null) this.wire.send();
  }

  question() {
    this.asked = this.key();
    return {...this.compose(), want: ["bridge"], bridge: {row: this.running}};
  }

  heard(answer) {
    const row = this.rows[this.running - 1];
    row.wait(false);
    row.node.classList.remove("stale");
    if (answer.ok) row.show(answer.bridge, this.asked);
    else row.fail(answer.errors.bridge ?? Object.values(answer.errors).join(" "));
    this.age();
    queueMicrotask(() => this.next());
  }

  /** No answer at all: nothing more is asked. */
  silent(still) {
    if (still || this.running === null) return;
    for (const number of [this.running, ...this.waiting]) {
      this.rows[number - 1].wait(false);
      this.rows[number - 1].fail(this.texts.gave_up);
    }
    Object.assign(this, {running: null, waiting: []});
  }

  count(key) {
    const now = this.rows.filter(row => row.key === key), {texts} = this;
    setText(this.sum, now.length ? texts.bridge_sum.replace("{n}", now.filter(row => row.holds).length).replace("{run}", now.length).replace("{all}", this.rows.length) : "");
  }
}
