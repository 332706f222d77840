// The chosen stage without its matrices: title and equation above them, sentences and lines of code below.

import {h, icon, inUse, setHtml, setText} from "./dom.js";
import {ramp, whenThemeChanges} from "./colour.js";

const LEAD = 18; // pixels of paper above the title
const ROOM = 34; // pixels below the sentences, so that a number that makes one longer moves nothing

/** An equation of several parts, as one <math> a part, so that a narrow screen can break it between them. */
function lines(mathml) {
  const whole = h("div", {html: mathml}).firstElementChild, parts = [[]];
  for (const child of [...whole.children]) {
    if (child.tagName.toLowerCase() === "mspace") parts.push([]);
    else parts.at(-1).push(child);
  }
  const made = parts.filter(part => part.length).map(part => {
    const math = whole.cloneNode(false);
    math.removeAttribute("alttext");
    math.append(...part);
    return math;
  });
  return [h("span", {class: "unseen"}, whole.getAttribute("alttext") ?? ""), ...made.map(math => h("span", {class: "equation-part", "aria-hidden": "true"}, math))];
}

export class Stage {
  constructor({stages, texts, choose}) {
    Object.assign(this, {stages, texts});
    this.place = h("p", {class: "eyebrow"});
    this.title = h("h1", {tabindex: "-1"});
    this.equation = h("div", {class: "equation"});
    const step = (by, label, path) => h("button", {type: "button", class: "bare step", "aria-label": label, title: label, onclick: () => choose(this.current + by)}, icon(path));
    this.previous = step(-1, texts.previous, "M12.5 4L6.5 10L12.5 16");
    this.next = step(1, texts.next, "M7.5 4L13.5 10L7.5 16");
    this.head = h("header", {class: "stage-head"},
      this.top = h("div", {class: "stage-top"}, h("div", {}, this.place, this.title), h("div", {class: "steps"}, this.previous, this.next)),
      this.row = h("div", {class: "equation-row"}, this.equation));
    this.facts = h("div", {class: "facts"});
    new ResizeObserver(() => this.reserve()).observe(this.place); // as wide as they are, and of a height of its own
    this.mixes = h("p", {});
    this.notice = h("p", {});
    this.reading = h("section", {class: "reading"}, this.facts,
      h("div", {class: "asides"}, h("h2", {}, texts.mixes), this.mixes, h("h2", {}, texts.notice), this.notice));
    this.lines = h("div", {class: "code-columns"});
    this.code = h("details", {class: "code"}, h("summary", {}, texts.code), this.lines);
  }

  /** Put something at the right of the equation. */
  beside({node}) {
    this.row.append(node);
  }

  choose(stage, moe = false) {
    if (this.current === stage && this.moe === moe) return;
    Object.assign(this, {current: stage, moe});
    const about = this.stages[stage - 1];
    setText(this.place, this.texts.stage_of.replace("{n}", stage).replace("{branch}", about.branch));
    setHtml(this.title, about.title);
    this.equation.replaceChildren(...lines(moe ? about.equation_moe : about.equation));
    setHtml(this.mixes, about.mixes);
    setHtml(this.notice, about.notice);
    inUse(this.previous, stage > 1, this.next, stage < this.stages.length);
    this.lines.replaceChildren(...about.code.map(({model, name, file, line, text}) => h("figure", {},
      h("figcaption", {}, h("b", {}, this.texts[`code_${model}`]), ` ${name}`, h("span", {}, this.texts.code_line.replace("{file}", file).replace("{line}", line))),
      h("pre", {tabindex: "0"}, h("code", {}, text)))));
    this.shownLines = null;
    this.roomy = false;
  }

  /** Show of the stage's lines only those that this run went through. places: their places in the stage's code. */
  ran(places) {
    const key = places.join();
    if (key === this.shownLines) return;
    this.shownLines = key;
    [...this.lines.children].forEach((figure, n) => { figure.hidden = !places.includes(n); });
  }

  /** Bring title, equation and steps out from under what sticks to the window's upper edge. */
  land(covered) {
    const above = covered + LEAD - this.head.getBoundingClientRect().top;
    if (above > 0) scrollBy({top: -above, behavior: "instant"});
  }

  update(facts) {
    const key = facts.join("\n");
    if (key !== this.key) this.write(facts);
    this.key = key;
    if (!this.roomy) this.reserve();
  }

  write(facts) {
    if (this.facts.children.length !== facts.length) {
      this.facts.replaceChildren(...facts.map(() => h("p", {})));
      this.roomy = false;
    }
    [...this.facts.children].forEach((p, n) => setHtml(p, facts[n]));
  }

  /** Keep a line's room below the sentences of this stage; measured once a stage and width, never for an edit. */
  reserve() {
    this.facts.style.minHeight = "";
    this.facts.style.minHeight = `${this.facts.offsetHeight + ROOM}px`;
    this.roomy = true;
  }
}

/** How to read the cells: scales and marks; only what can occur in the chosen stage. */
export class Legend {
  constructor(texts) {
    this.ramps = {signed: h("span", {class: "ramp"}), unit: h("span", {class: "ramp"})};
    const mark = (name, shown = "") => h("span", {class: "key"}, h("span", {class: `cell swatch ${name}`}, shown), texts[name]);
    this.keys = {
      signed: h("span", {class: "key", title: texts.range_hint}, h("span", {class: "num"}, "\u2212"), this.ramps.signed, h("span", {class: "num"}, "+"), texts.signed_scale),
      unit: h("span", {class: "key"}, h("span", {class: "num"}, "0"), this.ramps.unit, h("span", {class: "num"}, "1"), texts.unit_scale),
      masked: mark("masked", "\u2212∞"), padded: mark("padded"), edited: mark("edited"), changed: mark("changed"),
      clipped: mark("clipped"), nan: mark("nan", "NaN"), infinite: mark("infinite", "∞"),
    };
    this.node = h("div", {class: "legend", role: "group", "aria-label": texts.legend}, ...Object.values(this.keys));
    this.paint();
    whenThemeChanges(() => this.paint());
  }

  /** panels as the server sends them. */
  update(panels, compare) {
    const marks = panels.flatMap(p => p.slices.map(s => s.state)).join(""), odd = panels.flatMap(p => p.slices.flatMap(s => Object.values(s.special ?? {})));
    const any = bits => [...new Set(marks)].some(c => (c.charCodeAt(0) - 48) & bits);
    const show = {
      signed: panels.some(p => p.scale === "signed"), unit: panels.some(p => p.scale === "unit"), masked: any(1), padded: any(2), edited: true, changed: true,
      clipped: compare !== "change" && panels.some(p => p.slices.some(s => s.values?.some(x => Math.abs(x) > p.range * (1 + 1e-6)))), nan: odd.includes("nan"), infinite: odd.includes("inf"),
    };
    for (const [name, on] of Object.entries(show)) this.keys[name].hidden = !on;
  }

  paint() {
    for (const [scale, node] of Object.entries(this.ramps)) node.style.backgroundImage = ramp(scale);
  }
}
