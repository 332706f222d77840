// The chosen cell opened up: its equation in symbols and in numbers, what it is made from, and the way back.

import {CellForm} from "./cell_form.js";
import {h, icon, setHtml, setText} from "./dom.js";
import {precise, short, typed} from "./format.js";
import {Light} from "./light.js";
import {number, Terms} from "./terms.js";

const CLOSE = "M5 5L15 15M15 5L5 15";
const MOST_CRUMBS = 5;
const same = (a, b) => Boolean(a && b) && a.q === b.q && a.i.join() === b.i.join();

export class Inspector {
  /** act: {ask(), set(q, i, x)}; quantities: the page's declarations; names: axis letter -> word. */
  constructor({texts, quantities, names, letters, state, board, act}) {
    Object.assign(this, {texts, quantities, names, state, board, act, extra: {}, trail: [], light: new Light(board)});
    const about = q => this.about(q);
    this.terms = new Terms({about, texts, letters});
    this.form = new CellForm({texts, about, names, letters, act: {choose: (q, i) => this.choose({q, i, show: true}), set: (q, i, x) => act.set(q, i, x)}});
    this.crumbs = h("ol", {class: "crumbs", "aria-label": texts.trail});
    this.symbol = h("i", {class: "sym"});
    this.place = h("span", {class: "num"});
    this.title = h("span", {class: "inspector-title"});
    this.head = h("h2", {tabindex: "-1", id: "inspector-title"}, this.symbol, this.place, this.title);
    this.equation = h("div", {class: "inspector-equation"});
    this.force = h("p", {class: "inspector-force", hidden: true});
    this.result = h("b", {class: "num"});
    this.equals = h("span", {class: "equals", "aria-hidden": "true"}, "=");
    this.chain = h("div", {class: "chain"}, this.force, this.equation, h("span", {class: "substituted"}, this.equals, this.terms.node), h("span", {class: "equals"}, "= ", this.result));
    this.check = h("p", {class: "inspector-check", role: "status"});
    this.opener = h("button", {type: "button", class: "link", "aria-expanded": "false", dataset: {act: "set-form"}, onclick: () => this.toggleForm()}, texts.set_cell);
    this.node = h("section", {class: "inspector", "aria-labelledby": "inspector-title", dataset: {inspector: ""}, hidden: true},
      h("header", {class: "inspector-head"}, this.crumbs, this.head,
        h("span", {class: "inspector-tools"}, this.opener, h("button", {type: "button", class: "bare", "aria-label": texts.close_inspector, title: texts.close_inspector, onclick: () => this.close()}, icon(CLOSE)))),
      h("div", {class: "inspector-body", tabindex: "0", role: "group", "aria-label": texts.inspector_numbers}, this.chain), this.check, this.form.node);
    this.dock = h("div", {class: "dock"}, this.node);
    new ResizeObserver(() => { // how much of the window's lower edge is covered, for whatever scrolls into view
      const grew = this.node.offsetHeight > (this.tall ?? 0);
      this.tall = this.node.offsetHeight;
      this.most = Math.max(this.most ?? 0, this.tall);
      for (const [name, px] of [["--dock", this.tall], ["--dock-most", this.most]]) if (this.tall) this.page().style.setProperty(name, `${px}px`);
      if (grew) this.board.uncover(this.node.getBoundingClientRect().top);
    }).observe(this.node);
    this.listen();
  }

  about(q) {
    return this.quantities[q] ?? this.extra[q] ?? {symbol: q, plain: q, title: "", role: "resid", axes: []};
  }

  listen() {
    const {node, board} = this;
    node.addEventListener("click", event => {
      const button = event.target.closest("[data-term]");
      if (button) this.follow({q: button.dataset.term, i: button.dataset.at.split(",").map(Number)});
    });
    const point = event => {
      const button = event.target.closest?.("[data-term]");
      this.light.point(button?.dataset.term, button?.dataset.at.split(",").map(Number));
    };
    for (const type of ["pointerover", "focusin"]) node.addEventListener(type, point);
    for (const type of ["pointerleave", "focusout"]) node.addEventListener(type, () => this.light.point());
    board.node.addEventListener("pointerover", event => this.pointBack(event.target.closest?.(".cell")?.firstElementChild?.cell));
    board.node.addEventListener("pointerleave", () => this.pointBack(null));
    board.node.addEventListener("click", event => { // a click on a cell that has the focus already
      const {cell} = event.target;
      if (cell && !this.state.select) this.choose({q: cell.grid.q, i: cell.index});
    });
    board.node.addEventListener("cell", event => this.choose(event.detail));
    document.addEventListener("keydown", event => {
      if (!node.isConnected) return; // another page has taken this one's place
      if (event.key === "Escape" && this.state.select && !event.defaultPrevented && !event.target.closest?.("dialog, select")) this.close();
      if (event.key === "F2" && this.state.select) this.head.focus({preventScroll: true});
    });
  }

  /** A cell got the focus, was clicked, or was named: a new way starts with it. */
  choose(cell) {
    if (same(cell, this.state.select)) return;
    this.trail = cell.span ? [] : [cell];
    this.state.select = cell;
    this.act.ask();
  }

  /** A term was opened: one step further on the way, or back to where it was passed. */
  follow(cell) {
    const at = this.trail.findIndex(passed => same(passed, cell));
    this.trail = at < 0 ? [...this.trail, cell] : this.trail.slice(0, at + 1);
    this.state.select = {...cell, show: true};
    this.arriving = true;
    this.act.ask();
  }

  close() {
    const inside = this.node.contains(document.activeElement), {select} = this.state;
    if (!select) return;
    this.state.select = null;
    this.update(null);
    if (inside) {
      this.light.cell(select.q, select.i)?.face.focus({preventScroll: true});
      this.board.rest(true);
    }
    if (inside && this.state.select) this.state.select = null;
    this.act.ask();
  }

  toggleForm(open = this.form.node.hidden) {
    this.form.node.hidden = !open;
    this.opener.setAttribute("aria-expanded", String(open));
    this.node.style.minHeight = "";
  }

  page() {
    return this.node.closest(".mbx");
  }

  update(inspect, newest = true) {
    if (newest && this.left(inspect)) return this.close();
    const opening = this.node.hidden && inspect;
    this.node.hidden = !inspect;
    this.page()?.classList.toggle("inspecting", Boolean(inspect));
    this.light.show(inspect);
    if (!inspect) {
      this.light.point();
      this.shown = null;
      return undefined;
    }
    this.extra = inspect.extra;
    const inside = this.node.contains(document.activeElement), moved = !same(inspect, this.shown);
    if (moved && newest && !same(this.trail.at(-1), inspect)) this.trail = [{q: inspect.q, i: inspect.i}];
    this.shown = {q: inspect.q, i: inspect.i};
    this.node.style.minHeight = moved ? "" : `${this.tall}px`; // new numbers of the same cell never make it smaller
    if (moved) this.showHead(inspect);
    setHtml(this.equation, inspect.mathml);
    this.terms.node.hidden = this.equals.hidden = inspect.given;
    if (!inspect.given) this.terms.update(inspect.tree);
    setText(this.result, short(number(inspect.exact)));
    this.inForce(inspect);
    setText(this.check, this.words(inspect));
    this.check.classList.toggle("apart", !inspect.rounding);
    this.form.update({...inspect, x: number(inspect.value)});
    if (opening) this.toggleForm(!this.light.cell(inspect.q, inspect.i));
    if (moved) this.arrive(inspect, inside);
    return undefined;
  }

  /** Whether the visitor went to a stage that does not show the chosen cell. */
  left(inspect) {
    const {stage} = this.state, moved = this.stage !== undefined && this.stage !== stage;
    this.stage = stage;
    return moved && inspect && !this.arriving && same(inspect, this.shown) && !this.light.cell(inspect.q, inspect.i) && !this.light.heat(inspect.q, inspect.i);
  }

  /** An edited cell: first the number that counts, then what it has replaced. */
  inForce({given, edited, set_by: by, value, computed}) {
    this.node.classList.toggle("given", given);
    this.force.hidden = !edited;
    this.result.parentNode.classList.toggle("replaced", edited);
    if (!edited) return;
    const [before, after] = this.texts[`force_${by}${given ? "_given" : ""}`].replace("{computed}", short(number(computed))).split("{value}");
    this.force.replaceChildren(before, h("b", {class: "num"}, typed(number(value))), after);
  }

  showHead({q, i, title}) {
    const {symbol, role, axes} = this.about(q);
    this.symbol.className = `sym role-${role}`;
    setHtml(this.symbol, symbol);
    setText(this.place, `[${i.join(", ")}]`);
    this.place.title = axes.map((letter, n) => `${this.names[letter] ?? letter} ${i[n]}`).join(", ");
    setText(this.title, title);
    const passed = this.trail.slice(0, -1), left = passed.length - MOST_CRUMBS;
    const few = left > 0 ? [passed[0], null, ...passed.slice(2 - MOST_CRUMBS)] : passed;
    this.crumbs.replaceChildren(...few.map(cell => h("li", {}, cell ? this.crumb(cell) : "…")));
  }

  crumb(cell) {
    const {symbol, role, plain} = this.about(cell.q), place = `[${cell.i.join(", ")}]`;
    return h("button", {type: "button", dataset: {term: cell.q, at: cell.i.join(",")}, "aria-label": this.texts.back_to.replace("{cell}", plain + place)},
      h("i", {class: `sym role-${role}`, html: symbol}), h("span", {class: "num"}, place));
  }

  /** The chosen cell is in sight; whoever works inside the inspector stays there. */
  arrive({q, i}, inside) {
    if (inside || this.arriving) {
      if (!this.form.node.contains(document.activeElement)) this.head.focus({preventScroll: true});
    }
    this.arriving = false;
    requestAnimationFrame(() => requestAnimationFrame(() => { // once all is in place
      const shown = this.light.cell(q, i)?.box ?? this.light.heat(q, i)?.canvas;
      if (shown !== document.activeElement) shown?.scrollIntoView({block: "nearest", inline: "nearest"});
    }));
  }

  /** What is known of the number: given, computed alike, or set by somebody. */
  words({given, given_as: as, edited, dtype, rounding, masked, ...numbers}) {
    const [computed, exact, gap] = ["computed", "exact", "gap"].map(name => number(numbers[name]));
    const fill = (name, also = {}) => Object.entries({computed: precise(computed), exact: precise(exact), gap: short(Number(gap.toPrecision(1))), dtype, ...also})
      .reduce((text, [word, x]) => text.replaceAll(`{${word}}`, x), this.texts[name]);
    const parts = [];
    if (given && !edited) parts.push(fill(`given_${as}`));
    if (!given) {
      parts.push(fill(gap === 0 ? "check_equal" : rounding ? "check_rounding" : "check_apart"));
      if (masked) parts.push(this.texts.check_masked);
    }
    if (edited) parts.push(this.texts.change_baseline);
    return parts.join(" ");
  }

  /** The terms that stand for a cell of the matrices. */
  pointBack(cell) {
    for (const button of this.near ?? []) delete button.dataset.hot;
    this.near = cell ? this.terms.buttons?.get(`${cell.grid.q}:${cell.index.join(",")}`) ?? [] : [];
    for (const button of this.near) button.dataset.hot = "";
  }
}
