// Plotly figures, kept alive: the same figure with new numbers redraws its traces only.

import {fading, h, setHtml} from "./dom.js";
import {role, theme, whenThemeChanges} from "./colour.js";

const CONFIG = {displayModeBar: false, responsive: true, doubleClick: "reset"};
const FAST = new Set(["heatmap", "scatter"]);
const MARGIN_OF_SIGHT = "150px";
const WARM_MS = 1500;
let library = null;

/** Plotly, fetched once, when the first figure needs it; if it does not come, the next figure asks again. */
function plotly(address) {
  library ??= new Promise((done, failed) => {
    if (globalThis.Plotly) return done(globalThis.Plotly);
    document.head.append(h("script", {src: address, async: true, onload: () => done(globalThis.Plotly), onerror: failed}));
  }).catch(error => {
    library = null;
    throw error;
  });
  return library;
}

/** How often figures were redrawn by their traces alone, and whole. */
export const drawn = {traces: 0, whole: 0};

/**
 * New arrays for the traces of a graph that is already drawn. Uses Plotly's internals (`_fullData`, `_module.calc`,
 * `calcdata`, `_basePlotModules`), and therefore only for trace types that are computed one by one. Throws where
 * those internals are not as expected; the caller then draws the whole figure.
 */
export function redrawTraces(graph, data) {
  data.forEach((trace, n) => {
    const complete = graph._fullData[n];
    for (const key of arrayKeys(trace)) graph.data[n][key] = complete[key] = trace[key];
    if (trace.marker) copyArrays(trace.marker, graph.data[n].marker, complete.marker);
    const computed = complete._module.calc(graph, complete);
    computed[0].t = graph.calcdata[n][0].t ?? {};
    computed[0].trace = complete;
    graph.calcdata[n] = computed;
  });
  graph._fullLayout._basePlotModules.forEach(module => module.plot(graph));
}

function copyArrays(from, ...into) {
  for (const key of arrayKeys(from)) for (const place of into) place[key] = from[key];
}

const arrayKeys = thing => Object.keys(thing).filter(key => Array.isArray(thing[key]));

/** Everything about a figure but its numbers: equal skeletons may share a graph. */
function skeleton({data, layout}) {
  const bones = (key, value) => (Array.isArray(value) && value.length && key !== "colorscale" && key !== "range" && key !== "shapes"
    && key !== "annotations" && key !== "data" && typeof value[0] !== "object" ? value.length
    : Array.isArray(value) && Array.isArray(value[0]) && key !== "colorscale" ? [value.length, value[0].length] : value);
  return JSON.stringify({theme: theme(), data, layout}, bones); // no array, which would count as its length
}

const NARROW = matchMedia("(max-width: 620px)"), SCROLLED = 540; // as in page.css: a wider figure scrolls there
const FEW = 8; // units of the only x axis that a phone shows whole
const LEAP = 1e4; // numbers that grow or shrink by more leave the axes of the last drawing, and SVG's range

/** The largest finite number of a figure's traces. */
function reach(data) {
  let most = 0;
  const look = x => {
    if (Array.isArray(x)) x.forEach(look);
    else if (typeof x === "number" && Number.isFinite(x)) most = Math.max(most, Math.abs(x));
  };
  for (const {x, y, z} of data) [x, y, z].forEach(look);
  return most;
}

/** Whether the numbers of a drawing went so far that it must be made anew. */
const leapt = (from, to) => Math.max(from, to) > LEAP * Math.max(Math.min(from, to), 1);

const quick = data => data.every(trace => FAST.has(trace.type) && !trace.stackgroup);

/** The figure in the page's colours and type. */
function dressed({data, layout}) {
  const style = getComputedStyle(document.querySelector(".mbx")), read = name => style.getPropertyValue(name).trim();
  return {
    data: data.map(trace => painted(trace)),
    layout: {
      ...layout,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: {...layout.font, family: read("--sans"), color: read("--ink-2")},
      hoverlabel: {bgcolor: read("--raised"), bordercolor: read("--line"), font: {family: read("--sans"), color: read("--ink"), size: 13}},
    },
  };
}

/** A copy of a trace whose named colours (`meta.paint`) are those of the page's theme. */
function painted(trace) {
  const copy = {...trace};
  for (const [path, name] of Object.entries(trace.meta?.paint ?? {})) {
    const parts = path.split("."), last = parts.pop();
    let place = copy;
    for (const part of parts) place = place[part] = {...place[part]};
    place[last] = role(name);
  }
  return copy;
}

/**
 * Where a page has a <base>, Plotly writes the address of the moment into every reference to a gradient or clip path;
 * ours changes with the state, and the references would break. Plotly looks for it once, at a graph's first drawing.
 */
function withoutBase(draw) {
  const base = document.querySelector("base"), href = base?.getAttribute("href");
  base?.removeAttribute("href");
  try {
    draw();
  } finally {
    if (base && href !== null) base.setAttribute("href", href);
  }
}

/** Plain text in which only <sub>, <sup>, <b> and <i> count as markup. */
function typeset(text) {
  const safe = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return safe.replace(/&lt;(\/?(?:sub|sup|b|i))>/g, "<$1>");
}

const span = ({range: [from, to] = [0, Infinity]} = {}) => Math.abs(to - from);

const share = ({domain: [from, to] = [0, 1]} = {}) => to - from; // of the graph's width or height

class Figure {
  constructor(figure, board) {
    this.board = board;
    this.graph = h("div", {class: "graph"});
    this.title = h("h2", {});
    new ResizeObserver(([{contentRect}]) => this.resized(contentRect.width)).observe(this.title); // as wide as the figure
    this.words = h("p", {class: "figure-text"});
    this.box = fading(h("div", {class: "figure-box"}, this.graph));
    this.node = h("figure", {class: "figure", dataset: {figure: figure.id}, "aria-label": figure.title.replace(/<[^>]*>/g, "")}, this.title, this.box,
      h("figcaption", {}, this.words));
    if (NARROW.matches) Object.assign(this.box, {tabIndex: 0, role: "group", ariaLabel: this.node.ariaLabel}); // it scrolls there, by keys as well
    board.sight.observe(this.node);
    this.node.figure = this;
  }

  update(figure) {
    this.latest = figure;
    setHtml(this.title, typeset(figure.title));
    setHtml(this.words, typeset(figure.text));
    this.fit();
    this.draw();
  }

  /** How much room the graph takes: cells that stay square and circles that stay round need no more height than their width allows, and a few columns fit a phone. */
  fit(width = this.width) {
    const {layout} = this.latest, {height = 260, xaxis, yaxis, margin} = layout;
    const few = !layout.xaxis2 && span(xaxis) <= FEW, wide = NARROW.matches && !few ? Math.max(width, SCROLLED) : width;
    const across = Math.max(wide - margin.l - margin.r, 0) * share(xaxis) * span(yaxis) / span(xaxis);
    const round = yaxis?.scaleanchor && width ? margin.t + margin.b + across / share(yaxis) : Infinity;
    const key = `${Math.round(Math.min(height, round))}px`;
    this.width = width;
    this.graph.classList.toggle("few", few);
    if (this.graph.style.height !== key) this.graph.style.height = key;
    return parseInt(key);
  }

  resized(width) {
    const {height} = this.graph.style;
    this.fit(width);
    if (this.bones && this.graph.style.height !== height) this.repaint();
  }

  async draw() {
    if (!this.visible || this.latest === this.drawn) return;
    const Plotly = globalThis.Plotly ?? (await plotly(this.board.address).catch(() => null));
    if (!Plotly) return; // drawn with the next picture, or when it next comes into sight
    if (!this.visible || this.latest === this.drawn || !this.node.isConnected) return;
    const {latest} = this, bones = skeleton(latest), most = reach(latest.data), far = leapt(this.most ?? most, most);
    Object.assign(this, {drawn: latest, most});
    if (this.bones && (far || bones !== this.bones)) Plotly.purge(this.graph); // it would keep ranges of the last drawing
    if (bones === this.bones && !far && quick(latest.data)) {
      try {
        redrawTraces(this.graph, latest.data.map(painted));
        drawn.traces += 1;
        return;
      } catch {
        this.bones = null;
      }
    }
    this.bones = bones;
    drawn.whole += 1;
    const {data, layout} = dressed(latest);
    withoutBase(() => Plotly.react(this.graph, data, {...layout, height: this.fit()}, CONFIG));
  }

  /** Draw everything anew: what Plotly keeps of a drawing has the colours of the theme it was made in. */
  repaint() {
    if (this.bones) globalThis.Plotly.purge(this.graph);
    this.bones = this.drawn = null;
    if (this.latest) this.draw();
  }

  forget() {
    this.board.sight.unobserve(this.node);
    if (this.bones) globalThis.Plotly.purge(this.graph);
  }
}

export class FigureBoard {
  constructor({address}) {
    this.address = address;
    this.figures = new Map();
    this.node = h("div", {class: "figures"});
    this.sight = new IntersectionObserver(entries => entries.forEach(entry => {
      const {figure} = entry.target;
      figure.visible = entry.isIntersecting;
      figure.draw();
    }), {rootMargin: MARGIN_OF_SIGHT});
    whenThemeChanges(() => this.figures.forEach(figure => figure.repaint()));
  }

  /** Fetch the library while nothing else happens, so that the first figure need not wait for it. */
  warm() {
    const idle = globalThis.requestIdleCallback ?? (call => setTimeout(call, 1));
    setTimeout(() => idle(() => plotly(this.address).catch(() => {}), {timeout: 4000}), WARM_MS);
  }

  update(figures) {
    const wanted = new Set(figures.map(f => f.id));
    for (const [id, figure] of this.figures) {
      if (wanted.has(id)) continue;
      figure.forget();
      this.figures.delete(id);
    }
    for (const figure of figures) {
      if (!this.figures.has(figure.id)) this.figures.set(figure.id, new Figure(figure, this));
      this.figures.get(figure.id).update(figure);
    }
    const order = figures.map(f => this.figures.get(f.id).node);
    if (order.some((node, n) => this.node.children[n] !== node) || order.length !== this.node.children.length) this.node.replaceChildren(...order);
  }
}
