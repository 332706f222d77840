// The bar on top: name, presets, how values are shown, undo, ledger, light or dark, keys.

import {h, icon, inUse, segments} from "./dom.js";
import {theme} from "./colour.js";

const PATH = {
  undo: "M8 4L4 8L8 12M4 8H12.5A3.5 3.5 0 0 1 12.5 15H9",
  redo: "M12 4L16 8L12 12M16 8H7.5A3.5 3.5 0 0 0 7.5 15H11",
  theme: "M10 3.5A6.5 6.5 0 1 0 10 16.5ZM10 3.5A6.5 6.5 0 0 1 10 16.5",
  panel: "M3.5 4.5H16.5V15.5H3.5ZM12 4.5V15.5",
  table: "M3.5 4.5H16.5V15.5H3.5ZM3.5 8.2H16.5M3.5 11.9H16.5M8.5 8.2V15.5",
  share: "M10 12V3.5M6.8 6.4L10 3.2L13.2 6.4M5.5 9.5H4.5V16.5H15.5V9.5H14.5",
  present: "M3 4.5H17M4.5 4.5V12.5H15.5V4.5M10 12.5V15M7 17L10 15L13 17",
  studio: "M4 16L4.7 12.7L13.2 4.2L15.8 6.8L7.3 15.3ZM11.2 6.2L13.8 8.8",
  help: "M7.5 7.6A2.5 2.5 0 1 1 11 9.9C10.3 10.3 10 10.8 10 11.6M10 14V14.3",
};

export class Header {
  /** act: {preset(name), compare(how), undo(), redo(), ledger(), panel(), help(), studio(), share(), present(), language()}; home: where the name leads. */
  constructor({presets, texts, act, home}) {
    const tool = (name, call) => h("button", {type: "button", class: "bare tool", dataset: {act: name}, "aria-label": texts[name], title: texts[name], onclick: call}, icon(PATH[name]));
    this.presets = segments(texts.presets, presets.map(({name, title}) => [name, title, {preset: name}]), act.preset);
    this.compare = segments(texts.compare, ["value", "change", "both"].map(how => [how, texts[`compare_${how}`], {compare: how}]), act.compare);
    this.undo = tool("undo", act.undo);
    this.redo = tool("redo", act.redo);
    this.panel = tool("panel", act.panel);
    this.language = h("button", {type: "button", class: "bare tool language", dataset: {act: "language"}, title: texts.language_hint, "aria-label": `${texts.language_other}: ${texts.language_hint}`, onclick: act.language}, texts.language_other);
    this.node = h("header", {class: "top"},
      h("a", {class: "brand", href: home, title: texts.brand_hint}, h("span", {class: "brand-mark", "aria-hidden": "true"}), h("span", {}, "MiniMind ", h("em", {}, "Block Explorer"))),
      h("div", {class: "top-presets"}, this.presets),
      h("div", {class: "tools"},
        h("div", {class: "edit-tools"}, h("span", {class: "tool-label"}, texts.compare), this.compare, this.undo, this.redo), tool("studio", act.studio), tool("share", act.share), tool("present", act.present), tool("table", act.ledger), this.language, tool("theme", turnTheme), this.panel, tool("help", act.help)));
  }

  update({preset, compare, canUndo, canRedo}) {
    this.presets.set(preset);
    this.compare.set(compare);
    inUse(this.undo, canUndo, this.redo, canRedo);
  }
}

/** Light to dark and back; the address keeps it, as Gradio reads it there. */
function turnTheme() {
  const next = theme() === "dark" ? "light" : "dark";
  document.body.classList.toggle("dark", next === "dark");
  const address = new URL(location.href);
  address.searchParams.set("__theme", next);
  history.replaceState(null, "", address);
}
