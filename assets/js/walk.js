// The walk: one token's row through the eight stages, by itself or step by step.

import {h, icon, setText} from "./dom.js";

const PLAY = "M6.5 4.5V15.5L15.5 10Z", PAUSE = "M7 4.5V15.5M13 4.5V15.5", CLOSE = "M5 5L15 15M15 5L5 15";
const DWELL_MS = 4500; // at a stage, at speed 1
const READING = [0.4, 0.7]; // of that time until the first row that comes out is looked at, and the last
const SPEEDS = [0.5, 1, 2];
const LAST = 8, END = 9;
const HIDDEN = 3; // bits of a cell's state: masked, padded
// Where a token reads what other tokens wrote: {stage: the names of those rows}.
const READ = {4: ["k_rot", "present_k"], 5: ["v", "present_v"]};
const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export class Walk {
  /** root() -> the page's element; map, board: of the page; choose(stage). */
  constructor({root, map, board, texts, choose}) {
    Object.assign(this, {root, map, board, texts, choose, on: false, playing: false, token: null, speed: 1, stage: 1, looking: [], bands: new Map()});
    this.play = h("button", {type: "button", class: "bare walk-play", dataset: {act: "walk"}, onclick: () => this.toggle()});
    this.tokens = h("select", {class: "walk-token", "aria-label": texts.walk_token_hint, title: texts.walk_token_hint, dataset: {walkToken: ""}, onchange: event => this.follow(Number(event.target.value))});
    this.pace = h("button", {type: "button", class: "walk-speed num", "aria-label": texts.walk_speed, title: texts.walk_speed, dataset: {act: "walk-speed"}, onclick: () => this.faster()});
    this.end = h("button", {type: "button", class: "bare", "aria-label": texts.walk_end, title: texts.walk_end, dataset: {act: "walk-end"}, onclick: () => this.stop()}, icon(CLOSE));
    this.more = h("span", {class: "walk-more", hidden: true}, this.tokens, this.pace, this.end);
    this.says = h("span", {class: "unseen", role: "status"});
    this.node = h("div", {class: "walk", role: "group", "aria-label": texts.walk, dataset: {walk: "off"}}, this.more, this.play, this.says);
    board.node.addEventListener("focusin", () => this.pause());
    this.show();
  }

  toggle() {
    if (this.playing) return this.pause();
    this.on = this.playing = true;
    if (this.ended || this.stage === LAST && this.map.walker.at === null) return this.restart();
    this.place();
    this.wait();
    return undefined;
  }

  /** From the beginning: the marker enters the block with the stream. */
  restart() {
    this.ended = false;
    this.map.walker.hide();
    if (this.stage === 1) {
      this.place();
      this.wait();
    } else {
      this.going = true;
      this.choose(1);
    }
    this.show();
  }

  pause() {
    if (!this.playing) return;
    clearTimeout(this.timer);
    this.looking.forEach(clearTimeout);
    this.playing = false;
    this.show();
  }

  stop() {
    const inside = this.more.contains(document.activeElement);
    this.pause();
    Object.assign(this, {on: false, ended: false});
    this.map.walker.hide();
    this.light();
    this.show();
    if (inside) this.play.focus();
  }

  follow(token) {
    this.token = token;
    this.place();
  }

  faster() {
    this.speed = SPEEDS[(SPEEDS.indexOf(this.speed) + 1) % SPEEDS.length];
    this.show();
    if (this.playing) this.wait();
  }

  wait() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.next(), DWELL_MS / this.speed);
    this.looking.forEach(clearTimeout);
    this.looking = READING.map((part, n) => setTimeout(() => this.look(-n), DWELL_MS * part / this.speed));
    this.turn();
  }

  /** Bring the token's row of what the stage puts out into sight: of the first matrix (0) or the last (-1). */
  look(at) {
    if (!this.playing || document.hidden || !this.node.isConnected) return;
    const bands = [...this.board.node.querySelectorAll(".group.output .walk-band.own")], band = bands.at(at);
    if (!band) return;
    const margin = 28, below = band.getBoundingClientRect().bottom + margin - bare(this.root());
    if (below > 0) scrollBy({top: below, behavior: calm() ? "instant" : "smooth"});
  }

  next() {
    if (!this.node.isConnected || !this.playing) return;
    if (document.hidden) this.wait();
    else if (this.stage < LAST) {
      this.going = true;
      this.choose(this.stage + 1);
    } else {
      this.ended = true;
      this.map.walker.go(END, calm(), this.speed);
      this.pause();
    }
  }

  /** What was painted: which stage, how many tokens and what they are called. */
  update({stage, spec, tokens, panels}) {
    const moved = stage !== this.stage;
    this.stage = stage;
    this.panels = panels;
    this.count = {T: Number(spec.T), past: Number(spec.past ?? 0), words: tokens};
    if (!this.on) return;
    if (moved) this.ended = false;
    this.name();
    this.place();
    if (this.playing && (moved || this.going)) this.wait();
    this.going = false;
  }

  /** The marker and the rows where they belong now. */
  place() {
    this.token = Math.min(this.token ?? this.count.T - 1, this.count.T - 1);
    if (!this.on) return;
    if (!this.ended) this.map.walker.go(this.stage, calm(), this.speed);
    this.light();
    this.show();
  }

  /** The tokens to choose from. */
  name() {
    const {T, past, words} = this.count, key = JSON.stringify([T, past, words]);
    if (key === this.named) return;
    this.named = key;
    const label = t => `${this.texts.walk_token} ${past + t}${words?.[past + t] ? ` ${words[past + t].trim()}` : ""}`;
    this.tokens.replaceChildren(...Array.from({length: T}, (_, t) => h("option", {value: t}, label(t))));
  }

  show() {
    this.more.hidden = !this.on;
    this.root()?.classList.toggle("walking", this.on);
    this.node.dataset.walk = this.playing ? "playing" : this.on ? "paused" : "off";
    const label = this.texts[this.playing ? "walk_pause" : "walk_play"];
    if (this.shown !== this.playing) {
      this.shown = this.playing;
      this.play.replaceChildren(icon(this.playing ? PAUSE : PLAY));
      this.play.setAttribute("aria-label", label);
      this.play.title = label;
    }
    setText(this.pace, `${this.speed}×`.replace("0.5", "½"));
    if (!this.on) return setText(this.says, "");
    this.name();
    this.tokens.value = String(this.token);
    return setText(this.says, this.texts.walk_at.replace("{token}", this.count.past + this.token).replace("{n}", this.stage).replace("{title}", this.texts.map_titles[this.stage - 1]));
  }

  /** The ring around the button fills while a stage lasts. */
  turn() {
    this.play.style.setProperty("--dwell", `${DWELL_MS / this.speed}ms`);
    this.play.classList.remove("turning");
    if (calm()) return;
    void this.play.offsetWidth; // begin anew
    this.play.classList.add("turning");
  }

  /** A band around the token's row in every matrix of the stage that has one, and around the rows it reads. */
  light() {
    const kept = new Set();
    for (const panel of this.on ? this.panels : []) {
      const slices = this.board.views.get(panel.q)?.slices ?? [];
      for (const [first, last, kind] of this.rows(panel)) for (const slice of slices) kept.add(this.band(slice, first, last, kind));
    }
    for (const [band, forget] of this.bands) if (!kept.has(band)) forget();
  }

  /** [first row, last row, "own" or "read"] of a panel. */
  rows({q, axes, weight}) {
    const axis = axes.length > 1 ? axes.at(-2) : "", {past} = this.count, cached = axis === "Tk" ? past : 0;
    if (weight || !["T", "Tq", "Tk"].includes(axis)) return [];
    const own = this.token + cached;
    const others = READ[this.stage]?.includes(q) ? this.visible().map(key => key - past + cached).filter(row => row !== own && row >= 0) : [];
    return [...runs(others).map(([first, last]) => [first, last, "read"]), [own, own, "own"]];
  }

  /** The keys that the token sees, from the masked scores where they are shown as numbers. */
  visible() {
    const scores = this.panels.find(one => one.q === "masked_scores"), slice = scores?.slices[0];
    if (scores?.kind !== "grid") return Array.from({length: this.token + this.count.past}, (_, key) => key);
    return Array.from({length: slice.cols}, (_, key) => key).filter(key => !((slice.state.charCodeAt(this.token * slice.cols + key) - 48) & HIDDEN));
  }

  band(slice, first, last, kind) {
    const bands = (slice.bands ??= new Map()), key = `${first} ${last} ${kind}`;
    if (!bands.has(key)) {
      const made = h("span", {class: `walk-band ${kind}`, "aria-hidden": "true", dataset: {walkRow: first}});
      bands.set(key, made);
      slice.node.append(made);
      this.bands.set(made, () => {
        bands.delete(key);
        made.remove();
        this.bands.delete(made);
      });
    }
    const band = bands.get(key);
    if (slice.canvas) over(band, slice, first, last);
    else band.style.gridRow = `${first + 2} / ${last + 3}`;
    return band;
  }
}

/** Where what lies over the window's lower edge begins: the tools of an edit on a phone, the inspector. */
function bare(root) {
  const over = [...root.querySelectorAll(".edit-tools, .inspector")].map(node => node.getBoundingClientRect());
  return Math.min(innerHeight, ...over.filter(({height, top}) => height && top > innerHeight / 2).map(({top}) => top));
}

/** [2, 3, 4, 7] -> [[2, 4], [7, 7]] */
function runs(rows) {
  const found = [];
  for (const row of rows) {
    if (found.length && found.at(-1)[1] === row - 1) found.at(-1)[1] = row;
    else found.push([row, row]);
  }
  return found;
}

/** On a heatmap, a band of the canvas' own size; never so low that it cannot be seen. */
function over(band, {canvas, slice}, first, last) {
  const {offsetLeft: left, offsetTop: top, offsetWidth: width, offsetHeight: height} = canvas, each = height / slice.whole[0];
  const tall = Math.max(5, (last + 1 - first) * each), middle = top + (first + last + 1) / 2 * each;
  Object.assign(band.style, {left: `${left - 2}px`, top: `${middle - tall / 2 - 2}px`, width: `${width + 4}px`, height: `${tall + 4}px`});
}
