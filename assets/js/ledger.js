// The shape ledger: one row a quantity, rewritten only where a text differs.

import {h, setHtml, setText} from "./dom.js";
import {bytes, count} from "./format.js";

export class Ledger {
  constructor({quantities, texts, choose}) {
    Object.assign(this, {quantities, texts, choose, rows: new Map()});
    this.body = h("tbody");
    this.sum = h("p", {class: "ledger-sum num"});
    this.shared = h("p", {class: "ledger-shared num"});
    const heads = ["quantity", "axes", "shape", "dtype", "bytes", "flops", "agrees"];
    this.node = h("section", {class: "ledger", id: "ledger"},
      h("div", {class: "ledger-head"}, h("h2", {id: "ledger-title", tabindex: "-1"}, texts.ledger), this.sum, this.shared),
      h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": texts.ledger},
        h("table", {dataset: {ledger: ""}},
          h("thead", {}, h("tr", {}, ...heads.map(name => h("th", {scope: "col", class: `col-${name}`}, texts[`ledger_${name}`])))), this.body)));
  }

  update(rows, parameters) {
    const order = rows.map(row => row.name).join();
    if (order !== this.order) {
      this.order = order;
      this.rows = new Map(rows.map(row => [row.name, this.rows.get(row.name) ?? this.row(row)]));
      this.body.replaceChildren(...this.stages(rows));
    }
    let ownBytes = 0, allBytes = 0, allFlops = 0;
    for (const row of rows) {
      const {cells} = this.rows.get(row.name);
      allBytes += row.bytes;
      if (!row.shares) ownBytes += row.bytes; // memory of two names counts once
      allFlops += row.flops;
      setText(cells.title, row.title); // queries that no norm touches are called so
      setHtml(cells.axes, row.axes);
      setText(cells.shape, row.shape.join("×"));
      setText(cells.dtype, row.dtype);
      setText(cells.bytes, row.shares ? `(${bytes(row.bytes)})` : bytes(row.bytes));
      setText(cells.flops, row.flops ? count(row.flops) : "–");
      setText(cells.agrees, row.agrees ? "✓" : this.texts.ledger_differs);
      cells.agrees.title = row.note || this.texts[row.agrees ? "ledger_agrees_long" : "ledger_differs_long"];
    }
    setText(this.sum, this.texts.ledger_sum.replace("{n}", rows.length).replace("{bytes}", bytes(ownBytes)).replace("{flops}", count(allFlops)).replace("{parameters}", parameters.toLocaleString("en-US")));
    setText(this.shared, ownBytes < allBytes ? this.texts.ledger_shared.replace("{bytes}", bytes(allBytes)) : "");
  }

  /** Rows in order, each stage's first one marked. */
  stages(rows) {
    return rows.map((row, n) => {
      const {node} = this.rows.get(row.name);
      node.classList.toggle("first", n === 0 || rows[n - 1].stage !== row.stage);
      return node;
    });
  }

  row(row) {
    const about = this.quantities[row.name];
    const columns = ["axes", "shape", "dtype", "bytes", "flops", "agrees"].map(name => [name, h("td", {class: `col-${name}`})]);
    const cells = {...Object.fromEntries(columns), title: h("span", {class: "ledger-title"}, row.title)};
    const stage = row.shown;
    const name = h("th", {scope: "row"},
      h("button", {type: "button", class: "ledger-name", title: this.texts.go_to_stage.replace("{n}", stage), onclick: () => this.choose(stage)},
        h("span", {class: "ledger-stage num"}, row.stage ? String(row.stage) : "·"),
        h("i", {class: `sym role-${about.role}`, html: about.symbol}), cells.title));
    return {node: h("tr", {dataset: {row: row.name}}, name, ...columns.map(([, cell]) => cell)), cells};
  }
}
