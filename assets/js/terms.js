// An equation with its numbers, from the server's tree: drawn once for a shape, then only its numbers are written.

import {h, setText} from "./dom.js";
import {full, short} from "./format.js";

const ODD = {NaN, Inf: Infinity, "-Inf": -Infinity};
/** A number of the payload: what JSON lacks travels as text. */
export const number = x => (typeof x === "string" ? ODD[x] : x);

/** Everything of a tree but its numbers: equal shapes share their nodes. */
export function shape(tree) {
  switch (tree.op) {
    case "cell": return `${tree.q}[${tree.i}]`;
    case "number": return tree.s || String(tree.x);
    case "call": return `${tree.f}(${shape(tree.of)})`;
    case "ratio": return `${shape(tree.top)}/${shape(tree.bottom)}`;
    case "product": return `*${isSquare(tree) ? "²" : ""}(${tree.of.map(shape).join()})`;
    default: return `+${tree.over}${tree.n}(${tree.of.map(shape).join()}${tree.rest ? ",…" : ""})`;
  }
}

const isSquare = ({of}) => of.length === 2 && of.every(part => part.op === "cell") && shape(of[0]) === shape(of[1]);
const isMinus = tree => tree.op === "product" && tree.of[0].op === "number" && tree.of[0].x === -1 && !tree.of[0].s;
const leaf = tree => tree.op === "cell" || tree.op === "number";
/** Whether a term stays on one line. */
const together = tree => leaf(tree) || (tree.op === "product" && tree.of.every(leaf));

/** Whether a part is higher than a line: what stands beside it must stay there. */
const tall = tree => tree.op === "ratio" || (tree.op === "call" && tree.f === "sqrt") || (tree.op === "product" && tree.of.some(tall));

const el = (name, ...children) => h("span", {class: name}, ...children);
const sign = text => el("sign", text);
const ROOT = '<svg viewBox="0 0 10 20" preserveAspectRatio="none" aria-hidden="true"><path d="M0.5 12.5L2.6 11L5.2 18.6L9.6 0.7" vector-effect="non-scaling-stroke"/></svg>';

/** Draws trees. about(q) -> {symbol, plain, role}; texts of the page; `drawn` collects the buttons by cell. */
export class Terms {
  constructor({about, texts, letters}) {
    Object.assign(this, {about, texts, letters, node: h("div", {class: "terms"})});
  }

  /** Draw the tree, or write its numbers where its shape is as before; whether it was drawn anew. */
  update(tree) {
    const key = shape(tree);
    if (key === this.key) {
      this.write(tree);
      return false;
    }
    this.key = key;
    this.buttons = new Map();
    const {nodes, write} = this.part(tree, true);
    this.write = write;
    write(tree);
    this.node.replaceChildren(...nodes);
    return true;
  }

  /** {nodes, write(tree)} of a subtree; `first` says that no operator stands before it. */
  part(tree, first) {
    switch (tree.op) {
      case "cell": return this.cell(tree, first);
      case "number": return this.constant(tree, first);
      case "call": return tree.f === "sqrt" ? this.root(tree) : this.power(tree);
      case "ratio": return this.ratio(tree);
      case "product": return isMinus(tree) ? this.minus(tree) : this.product(tree, first);
      default: return this.sum(tree);
    }
  }

  cell(tree, first, square = false) {
    const about = this.about(tree.q), place = `${about.plain}[${tree.i.join(", ")}]`;
    const text = el("num");
    const node = h("button", {type: "button", class: `cell-number role-${about.role}`, dataset: {term: tree.q, at: tree.i.join(",")}}, text, square ? h("sup", {}, "2") : null);
    const key = `${tree.q}:${tree.i.join(",")}`;
    this.buttons.set(key, [...(this.buttons.get(key) ?? []), node]);
    const write = now => {
      const x = number(now.x), plain = short(x);
      if (Object.is(x, node.x)) return;
      node.x = x;
      setText(text, x < 0 && (!first || square) ? `(${plain})` : plain);
      node.title = `${place} = ${full(x)}`;
      node.setAttribute("aria-label", this.texts.open_cell.replace("{cell}", place).replace("{x}", plain));
    };
    return {nodes: [node], write};
  }

  constant(tree, first) {
    const node = h("span", {class: "constant num", title: tree.s});
    return {nodes: [node], write: now => {
      const x = number(now.x);
      setText(node, x < 0 && !first ? `(${short(x)})` : short(x));
    }};
  }

  ratio(tree) {
    const top = this.part(tree.top, true), bottom = this.part(tree.bottom, true);
    const node = el("ratio", el("above", ...top.nodes), el("below", ...bottom.nodes));
    return {nodes: [node], write: now => { top.write(now.top); bottom.write(now.bottom); }};
  }

  root(tree) {
    const inner = this.part(tree.of, true);
    const node = el("root", h("span", {class: "radical", html: ROOT}), el("under", ...inner.nodes));
    return {nodes: [node], write: now => inner.write(now.of)};
  }

  power(tree) {
    const inner = this.part(tree.of, true);
    return {nodes: [el("power", h("i", {}, "e"), el("exponent", ...inner.nodes))], write: now => inner.write(now.of)};
  }

  minus(tree) {
    const of = tree.of.slice(1), inner = this.product({...tree, of}, false);
    return {nodes: [sign("\u2212"), ...inner.nodes], write: now => inner.write({...now, of: now.of.slice(1)})};
  }

  product(tree, first) {
    if (isSquare(tree)) {
      const one = this.cell(tree.of[0], first, true);
      return {nodes: one.nodes, write: now => one.write(now.of[0])};
    }
    const parts = tree.of.map((factor, n) => this.part(factor, first && n === 0));
    const nodes = parts.flatMap(({nodes: own}, n) => {
      const inside = tree.of[n].op === "sum" ? [sign("("), ...own, sign(")")] : own;
      return n ? [sign("\u2009·\u2009"), ...inside] : inside;
    });
    return {nodes: tree.of.some(tall) ? [el("beside", ...nodes)] : nodes, write: now => parts.forEach((p, n) => p.write(now.of[n]))};
  }

  sum(tree) {
    const parts = tree.of.map((term, n) => this.part(isMinus(term) ? {...term, of: term.of.slice(1)} : term, n === 0 && !isMinus(term)));
    const nodes = parts.flatMap(({nodes: own}, n) => {
      const minus = isMinus(tree.of[n]), operator = n || minus ? [sign(minus ? (n ? "\u2212 " : "\u2212") : "+ ")] : [];
      return together(tree.of[n]) ? [n ? " " : "", el("term", ...operator, ...own)] : [n ? " " : "", ...operator, ...own];
    });
    const rest = tree.rest ? el("rest num") : null;
    if (rest) nodes.unshift(el("sigma", "Σ", h("small", {html: this.texts.sum_of.replace("{n}", tree.n).replace("{over}", this.letters[tree.axis] ?? "")})));
    return {
      nodes: tree.of.some(tall) ? [el("beside", ...nodes)] : rest ? [...nodes, " ", rest] : nodes,
      write: now => {
        parts.forEach((p, n) => p.write(isMinus(now.of[n]) ? {...now.of[n], of: now.of[n].of.slice(1)} : now.of[n]));
        if (rest) setText(rest, this.texts.rest_of.replace("{n}", now.rest.n.toLocaleString("en")).replace("{x}", short(number(now.rest.x))));
      },
    };
  }
}
