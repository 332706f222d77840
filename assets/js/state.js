// What the visitor has asked for: fields as typed, edits, stage, view. Knows nothing of the DOM or the server.

export const edge = (t, i) => `${t}:${i.join(",")}`;

export class State {
  constructor() {
    Object.assign(this, {
      query: null, preset: null, spec: {}, edits: [], switches: [], stage: 1, compare: "value",
      slice: {b: 0, h: 0}, select: null, view: "walk", past: [], future: [],
    });
    this.stray = new Map(); // texts in cells that are no numbers: they are kept, and never sent
  }

  /** The question for the server. */
  request() {
    const {query, preset, spec, edits, switches, stage, compare, slice, select, view} = this;
    const sent = edits.map(({t, i, x, on}) => ({t, i, x: Array.isArray(x) || Number.isFinite(x) ? x : String(x), on}));
    return {query, preset, spec, edits: sent, switches, stage, compare, slice, select, view};
  }

  /** Take over what the server made of the newest request. */
  adopt(answer) {
    this.query = this.preset = null;
    this.spec = {...answer.spec};
    this.edits = answer.edits.map(e => (typeof e.x === "string" ? {...e, x: Number(e.x.replace("inf", "Infinity"))} : e));
    this.switches = answer.switches;
    this.stage = answer.stage;
    this.slice = answer.slice;
    this.compare = answer.compare;
  }

  choosePreset(name) {
    this.remember();
    this.query = null;
    Object.assign(this, {preset: name, spec: {}, edits: [], switches: [], slice: {b: 0, h: 0}, select: null});
    this.stray.clear();
  }

  setField(name, typed) {
    this.spec[name] = typed;
  }

  findEdit(t, i) {
    const key = edge(t, i);
    return this.edits.findIndex(e => edge(e.t, e.i) === key);
  }

  /** Put x into a cell. Keystrokes of one visit to a cell (`session`) are one step of undo. */
  setCell(t, i, x, session) {
    if (this.session !== session) this.remember();
    this.session = session;
    const at = this.findEdit(t, i), edit = {t, i, x, on: true};
    this.edits = at < 0 ? [...this.edits, edit] : this.edits.with(at, {...this.edits[at], ...edit});
  }

  removeEdit(at) {
    this.change(this.edits.filter((_, n) => n !== at));
  }

  turnEdit(at, on) {
    this.change(this.edits.with(at, {...this.edits[at], on}));
  }

  turnAll(on) {
    this.change(this.edits.map(e => ({...e, on})));
  }

  change(edits) {
    this.remember();
    this.edits = edits;
  }

  remember() {
    this.past.push(this.edits);
    if (this.past.length > 200) this.past.shift();
    this.future = [];
    this.session = null;
  }

  /** One step back (or forward) through the edits; false when there is none. */
  undo(from = this.past, to = this.future) {
    if (!from.length) return false;
    to.push(this.edits);
    this.edits = from.pop();
    this.session = null;
    return true;
  }

  redo() {
    return this.undo(this.future, this.past);
  }
}
