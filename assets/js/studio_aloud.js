// Telling the block aloud: a clock, eight lines to tick, and the self-check afterwards. Nothing is heard or kept.

import {h, setHtml, setText} from "./dom.js";

const written = seconds => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;

export class Aloud {
  constructor({seconds, lines}, help) {
    const {texts} = help;
    Object.assign(this, {help, most: seconds});
    this.clock = h("p", {class: "studio-clock num", role: "timer", "aria-live": "off"});
    this.start = h("button", {type: "button", class: "plain go", dataset: {studio: "start"}, onclick: () => this.begin()}, texts.studio_start);
    this.stop = h("button", {type: "button", class: "plain go", dataset: {studio: "stop"}, hidden: true, onclick: () => this.end()}, texts.studio_stop);
    this.rows = lines.map((line, n) => this.row(line, n));
    this.label = h("legend", {class: "quiet"}, texts.studio_told);
    this.warning = h("p", {class: "studio-why"});
    this.done = h("button", {type: "button", class: "plain go", dataset: {studio: "named"}, hidden: true, onclick: () => help.check({seconds: this.told, named: this.rows.map(row => row.input.checked)})}, texts.studio_named_done);
    this.node = h("div", {class: "studio-form"}, h("div", {class: "studio-clockbar"}, this.clock, this.start, this.stop),
      h("fieldset", {class: "studio-told"}, this.label, ...this.rows.map(row => row.node)), this.warning, this.done);
    this.tick(0);
  }

  row(line, n) {
    const input = h("input", {type: "checkbox", dataset: {told: n}}), about = h("dl", {hidden: true});
    return {input, about, node: h("div", {}, h("label", {class: "tick"}, input, h("b", {class: "num"}, String(n + 1)), h("span", {html: line})), about)};
  }

  begin() {
    this.leave();
    const from = performance.now();
    this.running = setInterval(() => this.tick((performance.now() - from) / 1000), 250);
    Object.assign(this, {from, told: null});
    for (const {input, about} of this.rows) {
      input.checked = false;
      about.hidden = true;
    }
    setText(this.label, this.help.texts.studio_told);
    setHtml(this.warning, "");
    this.done.hidden = this.start.hidden = true;
    this.stop.hidden = false;
    this.rows[0].input.focus();
    this.help.changed();
    this.tick(0);
  }

  tick(seconds) {
    const {texts} = this.help, late = seconds > this.most;
    this.clock.classList.toggle("late", late);
    setText(this.clock, texts[late ? "studio_late" : "studio_clock"].replace("{now}", written(seconds)).replace("{most}", written(this.most)));
  }

  end() {
    this.leave();
    this.told = Math.round((performance.now() - this.from) / 1000);
    this.stop.hidden = true;
    setText(this.start, this.help.texts.studio_restart);
    this.start.hidden = false;
    this.start.focus();
    this.help.check({seconds: this.told}, false);
  }

  /** The page shows something else: the clock stops. */
  leave() {
    clearInterval(this.running);
  }

  take({more, done}) {
    if (!more.lines) return;
    const {texts} = this.help;
    setText(this.label, texts.studio_named);
    setHtml(this.warning, more.warning);
    this.done.hidden = done;
    this.rows.forEach(({input, about}, n) => {
      if (!done) input.checked = false;
      about.hidden = false;
      about.replaceChildren(...["in", "out"].flatMap(way => [h("dt", {}, texts[`studio_${way}`]), h("dd", {html: more.lines[n][way]})]));
    });
    if (!done) this.rows[0].input.focus();
  }
}
