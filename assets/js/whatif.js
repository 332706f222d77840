// What-ifs: the switches of the panel on the right, and the table of what each part of the block does.

import {h, setText} from "./dom.js";
import {heatColour, step, whenThemeChanges} from "./colour.js";
import {fold} from "./fold.js";
import {read, short} from "./format.js";
import {Part} from "./part.js";

/** "without_head:2" -> ["without_head", "2"] */
const split = name => {
  const at = name.indexOf(":");
  return at < 0 ? [name, ""] : [name.slice(0, at), name.slice(at + 1)];
};

/** "1/√d_h" -> with a lowered h; the page's own words, so there is nothing to escape. */
const lowered = text => text.replace(/_(\w+)/g, "<sub>$1</sub>");

/** A switch in words. */
export function switchWords(name, texts) {
  const [kind, argument] = split(name);
  return argument ? texts[`switch_${kind}_with`].replace("{n}", argument) : texts[`switch_${kind}`];
}

export class Switches {
  /** declared: the server's list; act: {toggle(name, on), only(kind, argument, session)} */
  constructor({declared, texts, act}) {
    Object.assign(this, {texts, act, on: new Set()});
    const plain = declared.filter(about => !about.argument), some = declared.filter(about => about.argument && about.argument !== "number");
    this.chips = plain.map(about => this.chip(about.name, about.label, about));
    this.rows = some.map(about => this.row(about));
    this.error = h("p", {class: "error", role: "alert", dataset: {errorFor: "switches"}});
    this.node = fold("whatif", {open: true, title: texts.whatif, class: "controls folds whatif"},
      h("div", {class: "chips"}, ...this.chips.map(c => c.node)), this.temperature(declared.find(about => about.argument === "number")),
      ...this.rows.map(r => r.node), this.error);
  }

  chip(name, text, {hint, role}, label = text) {
    const node = h("button", {type: "button", class: `chip role-${role}`, dataset: {switch: name}, title: hint, "aria-pressed": "false", "aria-label": label === text ? null : label,
      html: lowered(text), onclick: () => this.act.toggle(name, !this.on.has(name))});
    return {name, node, hint};
  }

  temperature(about) {
    this.tau = h("input", {type: "text", inputmode: "decimal", id: "switch-temperature", autocomplete: "off", spellcheck: "false", placeholder: "1", dataset: {switchValue: "temperature"}, "aria-describedby": "switch-temperature-error"});
    this.tauError = h("p", {class: "error", id: "switch-temperature-error", role: "alert", dataset: {errorFor: "temperature"}});
    for (const type of ["focus", "change"]) this.tau.addEventListener(type, () => { this.session = {}; });
    this.tau.addEventListener("input", () => this.typedTemperature());
    this.tau.addEventListener("blur", () => { if (!this.tauError.textContent) this.showTemperature(); });
    return h("div", {class: "field switch-row", title: about.hint}, h("label", {for: "switch-temperature"}, about.label), this.tau, this.tauError);
  }

  typedTemperature() {
    const text = this.tau.value.trim(), given = text.length > 24 ? text.slice(0, 23) + "…" : text, found = read(text);
    const wrong = text && (found.problem ? "number" : found.x < 1e-3 || found.x > 1e3 ? "range" : "");
    setText(this.tauError, wrong ? this.texts[`temperature_${wrong}`].replace("{given}", given) : "");
    if (wrong) this.tau.setAttribute("aria-invalid", "true");
    else this.tau.removeAttribute("aria-invalid");
    if (!wrong) this.act.only("temperature", text ? String(found.x) : null, this.session);
  }

  /** Forget a temperature that was refused: what comes now takes the place of all what-ifs. */
  release() {
    setText(this.tauError, "");
    this.tau.removeAttribute("aria-invalid");
    this.anew = true;
  }

  showTemperature() {
    const name = [...this.on].find(s => s.startsWith("temperature:"));
    const text = name ? split(name)[1].replace("-", "\u2212") : "";
    if ((document.activeElement === this.tau && !this.anew) || this.tauError.textContent || this.tau.value === text) return;
    this.tau.value = text;
  }

  /** A switch for each head or expert. */
  row(about) {
    const box = h("div", {class: "chips numbers", role: "group", "aria-label": about.label});
    return {about, box, n: 0, chips: [], node: h("div", {class: "switch-row chooser", title: about.hint, hidden: true}, h("span", {}, about.label), box)};
  }

  /** switches: [{s, on}]; choices as the server sends them. */
  update(switches, choices) {
    this.on = new Set(switches.filter(w => w.on).map(w => w.s));
    for (const row of this.rows) {
      const {about} = row, n = choices[about.argument], useful = about.argument === "head" ? n > 1 : n > 0;
      row.node.hidden = !useful;
      if (useful && row.n !== n) {
        row.n = n;
        row.chips = Array.from({length: n}, (_, i) => this.argumentChip(about, i));
        row.box.replaceChildren(...row.chips.map(c => c.node));
      }
    }
    for (const {name, node, hint} of [...this.chips, ...this.rows.flatMap(r => r.chips)]) {
      const idle = choices.idle.includes(name) && !this.on.has(name);
      node.setAttribute("aria-pressed", String(this.on.has(name)));
      node.disabled = idle;
      node.title = idle ? this.texts.whatif_idle : hint;
    }
    this.showTemperature();
    this.anew = false;
    setText(this.error, "");
  }

  argumentChip(about, i) {
    const name = `${about.name}:${i}`, chip = this.chip(name, String(i), about, switchWords(name, this.texts));
    if (about.name !== "without_head") chip.node.onclick = event => {
      event.stopImmediatePropagation();
      this.act.only(about.name, this.on.has(name) ? null : String(i), null);
    };
    return chip;
  }

  complain(message = "") {
    setText(this.error, message);
    if (message) this.node.open = true;
  }
}

const STRIP = 10; // pixels of a token while there is room
const STRIP_MOST = 180;

export class Effects {
  /** go(switch, stage): turn it on and go there. */
  constructor({texts, ask, compose, go}) {
    Object.assign(this, {texts, go});
    this.body = h("tbody", {});
    this.left = h("p", {class: "quiet"});
    this.error = h("p", {class: "error", role: "alert", dataset: {errorFor: "effects"}});
    this.heads = [["effects_stage", "stage"], ["effects_part", "part"], ["effects_moved", "moved"], ["effects_tokens", "tokens"]]
      .map(([key, name]) => h("th", {scope: "col", class: `col-${name}`}, texts[key]));
    this.table = h("table", {class: "effects-table", hidden: true}, h("thead", {}, h("tr", {}, ...this.heads)), this.body);
    this.busy = h("p", {class: "quiet busy"}, texts.computing);
    this.node = fold("effects", {title: texts.effects, class: "folded effects", dataset: {effects: ""}},
      h("p", {class: "lead", html: lowered(texts.effects_lead)}), this.error, this.busy, h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": texts.effects}, this.table), this.left);
    this.part = new Part({name: "effects", node: this.node, texts, ask, compose, show: found => this.show(found), fail: errors => this.fail(errors)});
    this.node.addEventListener("toggle", () => this.look());
    this.look();
    whenThemeChanges(() => this.paint());
  }

  look() {
    this.part.open = this.node.open;
    this.part.refresh();
  }

  fail(errors) {
    const message = errors.effects ?? errors[""] ?? "";
    setText(this.error, message);
    this.busy.hidden = true;
    if (message) this.table.hidden = true;
  }

  show({rows, tokens, past, heads_left: left}) {
    setText(this.error, "");
    this.busy.hidden = true;
    this.table.hidden = false;
    setText(this.left, left ? this.texts.effects_heads_left.replace("{n}", left) : "");
    const most = Math.max(...rows.map(r => r.moved), 1e-12);
    this.strips = [];
    this.most = Math.max(...rows.flatMap(r => r.tokens.flat()), 1e-12);
    this.body.replaceChildren(...rows.map(row => this.row(row, most, tokens, past)));
    this.paint();
  }

  row(row, most, words, past) {
    const {texts} = this, moved = `${short(100 * row.moved)} %`;
    const say = texts.effects_go.replace("{label}", row.label).replace("{moved}", moved).replace("{stage}", row.stage);
    const bar = h("span", {class: `bar-fill role-${row.role}`});
    bar.style.width = `${100 * row.moved / most}%`;
    return h("tr", {dataset: {effect: row.switch}, onclick: () => this.go(row.switch, row.stage)},
      h("td", {class: "col-stage num"}, String(row.stage)),
      h("th", {scope: "row", class: "col-part"}, h("button", {type: "button", title: row.hint, "aria-label": say,
        html: lowered(row.label), onclick: event => { event.stopPropagation(); this.go(row.switch, row.stage); }})),
      h("td", {class: "col-moved"}, h("span", {class: "bar-track", "aria-hidden": "true"}, bar), h("span", {class: "num"}, moved)),
      h("td", {class: "col-tokens"}, this.strip(row, words, past)));
  }

  /** One pixel a token, a line a batch row, scaled up. */
  strip({label, tokens}, words, past) {
    const rows = tokens.length, cols = tokens[0].length, size = Math.max(1, Math.min(STRIP, Math.floor(STRIP_MOST / cols)));
    const word = (b, t) => `${past + t}${words?.[b]?.[past + t] ? ` “${words[b][past + t].trim()}”` : ""}`;
    const line = (values, b) => values.slice(0, 12).map((x, t) => `${word(b, t)}: ${short(100 * x)} %`).join(", ") + (values.length > 12 ? ", …" : "");
    const say = tokens.map((values, b) => (rows > 1 ? this.texts.effects_strip_row.replace("{n}", b).replace("{values}", line(values, b)) : line(values, b))).join("; ");
    const node = h("canvas", {class: "strip", role: "img", width: cols, height: rows, title: say, "aria-label": this.texts.effects_strip.replace("{label}", label).replace("{values}", say)});
    Object.assign(node.style, {width: `${Math.min(STRIP_MOST, cols * size)}px`, height: `${rows * Math.max(4, Math.min(STRIP, Math.floor(32 / rows)))}px`});
    this.strips.push({node, tokens});
    return node;
  }

  paint() {
    for (const {node, tokens} of this.strips ?? []) {
      const context = node.getContext("2d"), cols = tokens[0].length, image = context.createImageData(cols, tokens.length);
      tokens.flat().forEach((x, n) => image.data.set([...heatColour(step(x, "unit", this.most), "unit"), 255], 4 * n));
      context.putImageData(image, 0, 0);
    }
  }
}
