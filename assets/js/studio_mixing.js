// What mixes where: eight operations to sort, each with an experiment on the real block.

import {h, setHtml} from "./dom.js";
import {form, fresh, Mark} from "./studio_parts.js";

export class Mixing {
  constructor({items, kinds, tokens, features, token, feature}, help, draft = {}) {
    const {texts} = help;
    Object.assign(this, {help});
    const numbers = (n, chosen, name) => h("select", {dataset: {answer: name}}, ...Array.from({length: n}, (_, i) => h("option", {value: i, selected: i === chosen}, String(i))));
    this.token = numbers(tokens, token, "token");
    this.feature = numbers(features, feature, "feature");
    this.rows = items.map((item, n) => this.row(item, n, kinds, draft.kinds?.[n] ?? null));
    this.node = form(texts.studio_check, () => help.check(this.answer()),
      h("p", {class: "studio-experiment"}, h("label", {}, texts.studio_token, " ", this.token), h("label", {}, texts.studio_feature, " ", this.feature)),
      h("div", {class: "studio-sort"}, ...this.rows.map(row => row.node)));
  }

  row(item, n, kinds, chosen) {
    const {texts, changed} = this.help, group = fresh(), title = h("span", {html: item}).textContent;
    const mark = new Mark(texts), hint = h("p", {class: "studio-hint", id: `${group}-hint`}), proof = h("div", {class: "studio-proofs", "aria-live": "polite"});
    const inputs = kinds.map((kind, at) => h("input", {type: "radio", name: group, value: at, checked: at === chosen, dataset: {kind: `${n}-${at}`}, "aria-describedby": `${group}-hint`, onchange: () => { mark.set(null); setHtml(hint, ""); changed(); }}));
    const prove = h("button", {type: "button", class: "link", dataset: {prove: n}, "aria-label": texts.studio_prove_of.replace("{title}", title), onclick: () => this.help.check({prove: n, token: Number(this.token.value), feature: Number(this.feature.value)}, false)}, texts.studio_prove);
    const node = h("fieldset", {class: "studio-sorted"}, h("legend", {html: item}),
      h("div", {class: "studio-picks"}, ...inputs.map((input, at) => h("label", {class: "studio-pick"}, input, h("span", {html: kinds[at]})))), mark.node, prove, hint, proof);
    return {node, mark, hint, proof, inputs};
  }

  answer() {
    return {kinds: this.rows.map(({inputs}) => { const at = inputs.findIndex(input => input.checked); return at < 0 ? null : at; })};
  }

  take({marks, hints, more}) {
    if (more.proofs) {
      const row = this.rows[more.about];
      for (const other of this.rows) other.proof.replaceChildren();
      row.proof.replaceChildren(...more.proofs.map(proof => this.proof(proof)));
      return;
    }
    if (marks.length !== this.rows.length) return;
    this.rows.forEach((row, n) => {
      row.mark.set(marks[n]);
      setHtml(row.hint, hints[n]);
    });
  }

  /** Which numbers of a result moved: a dot on each. */
  proof({said, symbol, row, column, cells}) {
    const {texts} = this.help;
    const head = h("tr", {}, h("td", {}), ...cells[0].map((_, n) => h("th", {scope: "col"}, String(n))));
    const body = cells.map((line, n) => h("tr", {}, h("th", {scope: "row"}, String(n)), ...line.map(moved => h("td", {class: moved ? "moved" : ""}, h("span", {class: "unseen"}, texts[moved ? "studio_moved" : "studio_still"])))));
    return h("figure", {class: "studio-proof"}, h("figcaption", {html: said}),
      h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": texts.studio_prove}, h("table", {}, h("caption", {html: `${symbol} ${row} × ${column}`}), h("thead", {}, head), h("tbody", {}, ...body))));
  }
}
