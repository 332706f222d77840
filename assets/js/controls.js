// The right-hand panel: fields built from the server's declarations, and the edits in force.

import {CROSS, h, icon, setText} from "./dom.js";
import {fold} from "./fold.js";
import {short} from "./format.js";
import {switchWords} from "./whatif.js";

const NUMBERS = new Set(["whole", "real"]);

class Field {
  /** about: the server's declaration; typed(name, text, session) when a person changes it: what is typed until Enter or the end of a visit is one session. */
  constructor(about, typed) {
    this.about = about;
    const id = `field-${about.name}`, common = {id, name: about.name, dataset: {field: about.name}, "aria-describedby": `${id}-error`};
    if (about.options.length) {
      this.input = h("select", common, ...about.options.map(([value, text]) => h("option", {value}, text)));
    } else if (about.kind === "text") {
      this.input = h("textarea", {...common, rows: 3, spellcheck: "false"});
    } else {
      this.input = h("input", {...common, type: "text", inputmode: {whole: "numeric", real: "decimal"}[about.kind] ?? "text", autocomplete: "off", spellcheck: "false"});
      if (NUMBERS.has(about.kind)) this.input.addEventListener("keydown", event => this.nudge(event, typed));
    }
    this.input.addEventListener("input", () => {
      this.typed = true;
      typed(about.name, this.input.value, this.session);
    });
    for (const type of ["focus", "change"]) this.input.addEventListener(type, () => { this.session = about.options.length ? null : {}; });
    this.input.addEventListener("blur", () => { this.typed = false; });
    this.error = h("p", {class: "error", id: `${id}-error`, role: "alert", dataset: {errorFor: about.name}});
    this.node = h("div", {class: `field kind-${about.kind}`, title: about.hint},
      h("label", {for: id}, about.symbol ? h("span", {class: "sym", html: about.symbol}) : null, h("span", {}, about.label)), this.input, this.error);
  }

  /** Arrow up and down move a number by its step. */
  nudge(event, typed) {
    const by = {ArrowUp: 1, ArrowDown: -1}[event.key];
    if (!by) return;
    const now = Number((this.input.value.trim() || this.input.placeholder).replace("\u2212", "-"));
    if (!Number.isFinite(now)) return;
    event.preventDefault();
    const next = now + by * (this.about.step ?? 1);
    this.input.value = String(Number(Math.max(this.about.least ?? -Infinity, next).toPrecision(10)));
    this.typed = true;
    typed(this.about.name, this.input.value, this.session);
  }

  /** value: "" where the field is left open; derived: what it then stands for; state: "", "dictated", "idle", "absent". */
  show(value, derived, state = "") {
    const text = value === null || value === undefined ? "" : String(value);
    if (derived !== undefined) this.input.placeholder = typeof derived === "number" ? short(derived) : derived;
    if (state !== this.state) {
      this.state = state;
      this.node.hidden = state === "absent";
      this.input.disabled = state === "dictated" || state === "idle";
      this.node.title = this.about.why[state] ?? this.about.hint;
    }
    if (this.typed && this.input === document.activeElement) return;
    if (this.input.value !== text) this.input.value = text;
  }

  complain(message = "") {
    setText(this.error, message);
    if (message) this.input.setAttribute("aria-invalid", "true");
    else this.input.removeAttribute("aria-invalid");
  }
}

export class Controls {
  /** groups: declarations; typed(name, text, session) when a field changes. */
  constructor({groups, typed}) {
    this.fields = new Map();
    this.groups = new Map(); // name -> the box of its fields
    this.nodes = groups.map(group => {
      const fields = h("div", {class: "fields"}, ...group.fields.map(about => {
        const field = new Field(about, typed);
        this.fields.set(about.name, field);
        return field.node;
      }));
      this.groups.set(group.name, fields);
      return group.folds
        ? fold(group.name, {title: group.title, class: "controls folds", dataset: {group: group.name}}, fields)
        : h("section", {class: "controls", dataset: {group: group.name}}, h("h2", {}, group.title), fields);
    });
  }

  update(spec, derived, states = {}) {
    for (const [name, field] of this.fields) field.show(spec[name], derived[name], states[name]);
  }

  /** Let go of the text that is being typed: an earlier one may come back in its place. */
  release() {
    for (const field of this.fields.values()) field.typed = false;
  }

  /** The first field that an error is about. */
  wrong(errors) {
    const found = [...this.fields].find(([name]) => errors[name]);
    return found && {name: found[1].about.name, input: found[1].input};
  }

  /** Show errors by field; returns those that no field shows. A folded group opens for its message. */
  complain(errors) {
    for (const [name, field] of this.fields) {
      field.complain(errors[name]);
      if (errors[name]) for (const box of [field.node.closest("details")]) if (box) box.open = true;
    }
    return Object.fromEntries(Object.entries(errors).filter(([name]) => !this.fields.has(name)));
  }
}

export class Edits {
  /** do: {remove(n), turn(n, on), turnAll(on), undo(), redo(), go(edit)} */
  constructor({quantities, texts, act}) {
    Object.assign(this, {quantities, texts, act});
    this.list = h("ol", {class: "edits"});
    this.none = h("p", {class: "quiet"}, texts.no_edits);
    this.all = h("button", {type: "button", class: "link", onclick: () => act.turnAll(!this.anyOn)});
    this.clear = h("button", {type: "button", class: "link", onclick: () => act.removeAll()}, texts.remove_all);
    this.count = h("span", {class: "count num"});
    this.bar = h("div", {class: "edit-bar"}, this.all, this.clear);
    this.node = h("section", {class: "controls"}, this.head = h("h2", {tabindex: "-1"}, texts.edits, " ", this.count), this.none, this.list, this.bar);
  }

  /** edits, and switches [{s, on}]. */
  update(edits, switches) {
    const key = JSON.stringify([edits, switches], (_, v) => (typeof v === "number" && !Number.isFinite(v) ? String(v) : v));
    if (key === this.key) return;
    this.key = key;
    const count = edits.length + switches.length;
    this.anyOn = [...edits, ...switches].some(e => e.on);
    const held = document.activeElement, inside = this.list.contains(held) || this.bar.contains(held), at = [...this.list.children].findIndex(item => item.contains(held));
    this.list.replaceChildren(...switches.map((one, n) => this.switched(one, n)), ...edits.map((edit, n) => this.item(edit, n)));
    this.none.hidden = count > 0;
    this.bar.hidden = count < 1;
    setText(this.count, count ? String(count) : "");
    setText(this.all, this.texts[this.anyOn ? "all_off" : "all_on"]);
    if (inside && (!held.isConnected || this.bar.hidden)) this.take(this.list.children[Math.min(at, count - 1)], held.tagName);
  }

  /** The focus of an item that is made anew or gone: to the like of it, else to the heading. */
  take(item, tag) {
    (item?.querySelector(tag) ?? this.head).focus({preventScroll: true});
  }

  switched({s, on}, n) {
    const words = switchWords(s, this.texts);
    return h("li", {dataset: {switchOn: s}, class: on ? "" : "off"},
      h("label", {title: words}, h("input", {type: "checkbox", ...(on ? {checked: true} : {}), "aria-label": `${this.texts.in_force}: ${words}`, onchange: event => this.act.turnSwitch(n, event.target.checked)}),
        h("span", {class: "edit-words"}, words)),
      h("button", {type: "button", class: "bare", dataset: {removeSwitch: s}, "aria-label": `${this.texts.remove_switch}: ${words}`, title: this.texts.remove_switch, onclick: () => this.act.removeSwitch(n)}, icon(CROSS)));
  }

  item(edit, n) {
    const about = this.quantities[edit.t] ?? {symbol: edit.t, plain: edit.t, role: "resid"};
    const place = `[${edit.i.map(i => i ?? ":").join(", ")}]`, value = typeof edit.x === "string" ? this.texts.given_values : short(edit.x);
    const words = `${about.plain}${place} = ${value}`;
    return h("li", {dataset: {edit: n}, class: edit.on ? "" : "off"},
      h("label", {title: words}, h("input", {type: "checkbox", ...(edit.on ? {checked: true} : {}), "aria-label": `${this.texts.in_force}: ${words}`, onchange: event => this.act.turn(n, event.target.checked)}),
        h("span", {class: "edit-words"}, h("i", {class: `sym role-${about.role}`, html: about.symbol}), h("span", {class: "num"}, place), h("span", {class: "num value"}, ` = ${value}`))),
      h("button", {type: "button", class: "bare", dataset: {remove: n}, "aria-label": `${this.texts.remove}: ${words}`, title: this.texts.remove, onclick: () => this.act.remove(n)}, icon(CROSS)));
  }
}
