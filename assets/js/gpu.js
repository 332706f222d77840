// The same run on a GPU, when somebody asks for it, and how far its numbers are from those on the page.

import {h, setHtml, setText} from "./dom.js";
import {short} from "./format.js";

const ASK = "explorer:gpu-ask", ANSWER = "explorer:gpu-answer"; // as in explorer/ui/gpu_event.py
const PATIENCE_MS = 120_000; // a GPU that many want is waited for

export class Gpu {
  /** compose() -> the state's request; quantities: the server's declarations, for their symbols. */
  constructor({texts, compose, quantities}) {
    Object.assign(this, {texts, compose, quantities});
    this.button = h("button", {type: "button", class: "plain", dataset: {gpu: "run"}, onclick: () => this.run()}, texts.gpu_run);
    this.said = h("p", {class: "quiet", role: "status", dataset: {gpu: "said"}});
    this.rows = h("tbody", {});
    this.table = h("details", {hidden: true}, h("summary", {}, texts.gpu_all),
      h("table", {}, h("thead", {}, h("tr", {}, h("th", {scope: "col"}, texts.ledger_quantity), h("th", {scope: "col", class: "num"}, texts.gpu_difference))), this.rows));
    this.node = h("div", {class: "gpu"}, this.button, h("p", {class: "quiet"}, texts.gpu_hint), this.said, this.table);
    this.listen = event => this.heard(event.detail);
  }

  /** Everything of the state that the numbers follow from. */
  key() {
    const {query, preset, spec, edits, switches} = this.compose();
    return JSON.stringify([query, preset, spec, edits, switches]);
  }

  run() {
    this.seq = Date.now(); // no other page of this visitor has asked by this number
    this.asked = this.key();
    this.wait(true);
    document.addEventListener(ANSWER, this.listen);
    this.say(this.texts.gpu_waiting);
    document.dispatchEvent(new CustomEvent(ASK, {detail: JSON.stringify({...this.compose(), seq: this.seq})}));
    clearTimeout(this.patience);
    this.patience = setTimeout(() => this.heard(JSON.stringify({ok: false, seq: this.seq, errors: {gpu: this.texts.gpu_lost}})), PATIENCE_MS);
  }

  heard(text) {
    let answer;
    try {
      answer = JSON.parse(text);
    } catch {
      return;
    }
    if (answer?.seq !== this.seq || !this.button.disabled) return; // to an earlier question, or too late
    clearTimeout(this.patience);
    document.removeEventListener(ANSWER, this.listen);
    this.wait(false);
    if (answer.ok) this.show(answer.gpu);
    else this.say(Object.values(answer.errors).join(" "), true);
  }

  /** The state may be another one now: its numbers are not those compared. */
  look() {
    if (this.asked && !this.button.disabled && this.key() !== this.asked) {
      this.asked = null;
      this.say("");
    }
  }

  wait(on) {
    this.button.disabled = on;
    this.node.setAttribute("aria-busy", String(on));
  }

  say(text, wrong = false) {
    setText(this.said, text);
    this.said.classList.toggle("error", wrong);
    this.table.hidden = true;
  }

  show({device, ms, rows, largest, at}) {
    const symbol = this.quantities[at]?.plain ?? at;
    this.say((largest === 0 ? this.texts.gpu_equal : this.texts.gpu_found).replace("{device}", device).replace("{ms}", short(ms)).replace("{largest}", short(largest)).replace("{at}", symbol));
    this.rows.replaceChildren(...rows.map(({name, difference}) => {
      const about = this.quantities[name], cell = h("th", {scope: "row", class: `sym role-${about?.role ?? "resid"}`, title: about?.title ?? name});
      setHtml(cell, about?.symbol ?? name);
      return h("tr", {dataset: {gpuRow: name}}, cell, h("td", {class: "num"}, typeof difference === "number" ? short(difference) : difference));
    }));
    this.table.hidden = false;
  }
}
