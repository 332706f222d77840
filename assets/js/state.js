// What the visitor has asked for: fields as typed, edits, stage, view. Knows nothing of the DOM or the server.

export const edge = (t, i) => `${t}:${i.join(",")}`;

export class State {
  constructor() {
    Object.assign(this, {
      query: null, preset: null, spec: {}, edits: [], switches: [], stage: 1, compare: "value",
      slice: {b: 0, h: 0}, select: null, view: "walk", past: [], future: [],
      lang: "en", chosenLang: "", present: false, // chosenLang: "" where the browser chose
      fit: false, // whether the newest text decides B, T and padding
      quizSeed: 0, // which of a stage's possible questions are asked
    });
    this.wrong = false; // whether the server refused what was asked last
    this.stray = new Map(); // texts in cells that are no numbers: they are kept, and never sent
  }

  /** The question for the server. */
  request() {
    const {query, preset, spec, edits, stage, compare, slice, select, view, fit} = this;
    const sent = edits.map(({t, i, x, on}) => ({t, i, x: Number.isFinite(x) ? x : String(x), on}));
    const names = on => this.switches.filter(one => one.on === on).map(one => one.s);
    return {query, preset, spec, edits: sent, switches: names(true), off: names(false), stage, compare, slice, select, view, fit, lang: this.lang, chosen_lang: this.chosenLang, present: this.present};
  }

  /** Take over what the server made of the newest request. */
  adopt(answer) {
    this.query = this.preset = null;
    this.fit = this.wrong = false;
    this.spec = {...answer.spec};
    this.agreed = {...answer.spec};
    // The values of a whole tensor stay packed, as text that begins with "z".
    this.edits = answer.edits.map(e => (typeof e.x === "string" && !e.x.startsWith("z") ? {...e, x: Number(e.x.replace("inf", "Infinity"))} : e));
    const listed = [...answer.switches.map(s => ({s, on: true})), ...answer.off.map(s => ({s, on: false}))];
    const order = this.switches.map(one => one.s), place = ({s}) => (order.includes(s) ? order.indexOf(s) : order.length);
    this.switches = listed.sort((a, b) => place(a) - place(b));
    this.stage = answer.stage;
    this.select = answer.select;
    this.slice = answer.slice;
    this.present = answer.present;
    this.compare = answer.compare;
  }

  choosePreset(name) {
    this.remember();
    Object.assign(this, {query: null, wrong: false, preset: name, spec: {}, edits: [], switches: [], slice: {b: 0, h: 0}, select: null});
    this.stray.clear();
  }

  setField(name, typed) {
    this.spec[name] = typed;
  }

  findEdit(t, i) {
    const key = edge(t, i);
    return this.edits.findIndex(e => edge(e.t, e.i) === key);
  }

  /** All that is done in one `session`, such as the keystrokes of one visit to a cell or field, is one step of undo. */
  begin(session = null) {
    if (!session || this.session !== session) this.remember();
    this.session = session;
  }

  /** Put x into a cell. */
  setCell(t, i, x, session) {
    this.begin(session);
    const at = this.findEdit(t, i), edit = {t, i, x, on: true};
    this.edits = at < 0 ? [...this.edits, edit] : this.edits.with(at, {...this.edits[at], ...edit});
  }

  /** Give a cell back what it had before this session, as if that had never begun; false when it did nothing. */
  takeBack(t, i, session) {
    if (!session || this.session !== session) return false;
    const at = this.findEdit(t, i), was = this.past.pop().edits.find(e => edge(e.t, e.i) === edge(t, i));
    if (at >= 0) this.edits = was ? this.edits.with(at, was) : this.edits.filter((_, n) => n !== at);
    this.future = this.dropped;
    this.session = null;
    return true;
  }

  removeEdit(at) {
    this.change(this.edits.filter((_, n) => n !== at));
  }

  turnEdit(at, on) {
    this.change(this.edits.with(at, {...this.edits[at], on}));
  }

  turnAll(on) {
    this.change(this.edits.map(e => ({...e, on})), this.switches.map(one => ({...one, on})));
  }

  /** Put a what-if in force, or take it out of the list. */
  setSwitch(s, on) {
    const others = this.switches.filter(one => one.s !== s);
    this.change(this.edits, on ? [...others, {s, on}] : others);
  }

  /** One what-if of its kind at a time; null takes it away. */
  setOnly(kind, argument, session = null) {
    this.begin(session);
    const others = this.switches.filter(one => !one.s.startsWith(`${kind}:`));
    this.switches = argument === null ? others : [...others, {s: `${kind}:${argument}`, on: true}];
  }

  removeSwitch(at) {
    this.change(this.edits, this.switches.filter((_, n) => n !== at));
  }

  turnSwitch(at, on) {
    this.change(this.edits, this.switches.with(at, {...this.switches[at], on}));
  }

  change(edits, switches = this.switches) {
    this.remember();
    Object.assign(this, {edits, switches});
  }

  /** The whole model: edits make sense only with the sizes and weights they were made for. Refused fields are left out. */
  snapshot() {
    const {query, preset, edits, switches, fit, own, text} = this;
    return {query, preset, edits, switches, fit, own, text, spec: {...(this.wrong && this.agreed ? this.agreed : this.spec)}};
  }

  restore(model) {
    const same = JSON.stringify([model.preset, model.spec]) === JSON.stringify([this.preset, this.spec]);
    if (!same) this.stray.clear();
    Object.assign(this, model, {session: null, wrong: false});
  }

  remember() {
    this.past.push(this.snapshot());
    if (this.past.length > 200) this.past.shift();
    this.dropped = this.future;
    this.future = [];
    this.session = null;
  }

  /** One step back (or forward) through models, edits and what-ifs; false when there is none. */
  undo(from = this.past, to = this.future) {
    if (!from.length) return false;
    if (!this.wrong) to.push(this.snapshot());
    this.restore(from.pop());
    return true;
  }

  redo() {
    return this.undo(this.future, this.past);
  }
}
