// Puts the page together: state in, question out, answer painted.

import {Address, asksForSomething} from "./address.js";
import {asker} from "./asking.js";
import {Board} from "./board.js";
import {Bridge} from "./bridge.js";
import {courseDownload, NormTrial, SoftmaxTrial} from "./checks.js";
import * as colour from "./colour.js";
import {Controls, Edits} from "./controls.js";
import {h, setText} from "./dom.js";
import {FigureBoard} from "./figure.js";
import {Gpu} from "./gpu.js";
import {Header} from "./header.js";
import {Inspector} from "./inspector.js";
import {helpCard, listen} from "./keys.js";
import {Ledger} from "./ledger.js";
import {browserLanguage, chosenLanguage, declare, otherLanguage, Texts} from "./language.js";
import {BlockMap} from "./map.js";
import {Notes, PathNote} from "./notes.js";
import {Present} from "./present.js";
import {Quiz} from "./quiz.js";
import {Share} from "./share.js";
import {Slices} from "./slices.js";
import {Legend, Stage} from "./stage.js";
import {State} from "./state.js";
import {Studio} from "./studio.js";
import {Examples, setField, Tokens} from "./weights.js";
import {Walk} from "./walk.js";
import {Ways} from "./ways.js";
import {Welcome} from "./welcome.js";
import {Effects, Switches} from "./whatif.js";
import {Wire} from "./wire.js";

const AGAIN_MS = 10_000; // after several tries in vain

class Page {
  /** languages: the Texts; state: new, or that of the page `before`, whose place this one takes. */
  constructor(element, {fixed, first, plotly}, ask, languages, state, before = null) {
    const {texts} = fixed;
    Object.assign(this, {element, plotly, texts, state, fixed, languages, cameFrom: before, next: null});
    declare(state.lang);
    colour.start(fixed.palette);
    const act = {
      preset: name => this.travel(s => s.choosePreset(name)),
      compare: how => this.set(s => { s.compare = how; }),
      undo: () => this.travel(s => s.undo()),
      redo: () => this.travel(s => s.redo()),
      remove: n => this.set(s => s.removeEdit(n)),
      removeAll: () => {
        this.switches.release();
        this.set(s => s.change([], []));
      },
      toggle: (name, on) => this.set(s => s.setSwitch(name, on)),
      only: (kind, argument, session) => this.set(s => s.setOnly(kind, argument, session)),
      removeSwitch: n => this.set(s => s.removeSwitch(n)),
      turnSwitch: (n, on) => this.set(s => s.turnSwitch(n, on)),
      type: (name, text, session) => this.set(s => setField(s, name, text, weights => fixed.examples[weights]?.[0]?.text ?? texts.default_text, session)),
      turn: (n, on) => this.set(s => s.turnEdit(n, on)),
      turnAll: on => this.set(s => s.turnAll(on)),
      choose: stage => this.choose(stage),
      step: by => this.choose(this.state.stage + by),
      ledger: () => this.ways.toLedger(),
      panel: () => this.ways.togglePanel(),
      help: () => this.help.showModal(),
      studio: () => this.studio.show(),
      walk: () => this.walk.toggle(),
      present: () => this.present.toggle(),
      share: () => this.share.show(this.state.present),
      language: () => this.turnLanguage(otherLanguage(this.state.lang)),
      escape: () => (this.present.on ? this.present.set(false) : this.walk.stop()),
    };
    const common = {texts, quantities: fixed.quantities, choose: act.choose};
    this.header = new Header({texts, presets: fixed.presets, act, home: state.chosenLang ? `?lang=${state.chosenLang}` : "?"});
    this.map = new BlockMap({...common, rows: fixed.map});
    this.stage = new Stage({...common, stages: fixed.stages});
    this.stage.beside(this.welcome = new Welcome({texts}));
    this.board = new Board({state: this.state, names: fixed.axes, texts, changed: () => this.ask(), selected: (q, i) => this.inspector.choose({q, i})});
    this.legend = new Legend(texts);
    this.inspector = new Inspector({texts, quantities: fixed.quantities, names: fixed.axes, letters: fixed.letters, state: this.state, board: this.board,
      act: {ask: () => this.ask(), set: (q, i, x) => this.set(s => s.setCell(q, i, x, {}))}});
    this.figures = new FigureBoard({address: plotly});
    this.controls = new Controls({groups: fixed.controls, typed: act.type});
    this.edits = new Edits({texts, quantities: fixed.quantities, act});
    this.switches = new Switches({declared: fixed.switches, texts, act});
    this.tokens = new Tokens({texts});
    this.examples = new Examples({examples: fixed.examples, texts, choose: text => act.type("text", text)});
    this.controls.fields.get("text").node.after(this.examples.node);
    const asides = {texts, ask, compose: () => this.state.request(), plotly, row: fixed.course_row};
    this.trials = [new NormTrial(asides), new SoftmaxTrial(asides)];
    if (fixed.gpu) {
      this.gpu = new Gpu({texts, quantities: fixed.quantities, compose: () => this.state.request()});
      this.controls.groups.get("runtime").append(this.gpu.node);
    }
    this.quiz = new Quiz({...asides, state, board: this.board, before: before?.quiz});
    this.effects = new Effects({...asides, go: (name, stage) => this.tryOut(name, stage)});
    this.bridge = new Bridge(asides);
    this.studio = new Studio({...asides, state, visit: (stage, preset) => this.visit(stage, preset)});
    this.stage.code.append(courseDownload(asides));
    this.ledger = new Ledger(common);
    this.walk = new Walk({root: () => this.root, map: this.map, board: this.board, texts, choose: act.choose});
    this.stage.previous.before(this.walk.node);
    this.share = new Share(asides);
    this.help = helpCard(texts);
    this.slices = new Slices({texts, choose: (letter, i) => this.set(s => { s.slice = {...s.slice, [letter]: i}; })});
    this.address = new Address();
    this.notes = new Notes({texts, quantities: fixed.quantities});
    this.pathNote = new PathNote({texts});
    this.notRun = h("div", {class: "not-run", dataset: {notRun: ""}});
    this.trouble = h("p", {class: "error general", role: "alert", dataset: {errorFor: ""}});
    this.root = h("div", {class: "mbx", dataset: {ready: "false", seq: "0"}},
      this.header.node,
      h("div", {class: "columns"},
        this.map.node,
        h("div", {class: "centre", role: "region", "aria-label": texts.stage}, this.notRun, this.trouble, this.stage.head, this.tokens.list, this.slices.node, this.board.node, this.legend.node, this.pathNote.node, this.inspector.dock, this.stage.reading, h("button", {type: "button", class: "link to-studio", dataset: {act: "to-studio"}, onclick: act.studio}, texts.studio), this.figures.node, ...this.trials.map(t => t.node), this.quiz.node, this.stage.code, this.effects.node, this.bridge.node, this.studio.node, this.ledger.node),
        this.side = h("aside", {class: "side", tabindex: "-1", style: "scroll-margin-top: calc(var(--top) + 56px)", "aria-label": texts.settings}, this.edits.node, this.switches.node, ...this.controls.nodes)),
      this.notes.node, this.board.tip, this.help, this.share.node);
    this.present = new Present({root: this.root, texts, changed: on => this.set(s => { s.present = on; })});
    this.ways = new Ways(this);
    this.wire = new Wire({ask, compose: () => this.state.request(), heard: (answer, newest) => this.heard(answer, newest), silent: still => this.visible.silent(still), slow: on => this.visible.slow(on), explain: ({why, status}) => texts[why].replace("{status}", status), seq: before?.wire.seq});
    listen(this.root, act);
    this.figures.warm();
    if (state.asked) this.ask();
    else this.begin(first);
  }

  /** Paint the default at once, unless the address asks for something else. */
  begin(first) {
    this.enter();
    this.state.asked = true;
    if (asksForSomething()) {
      this.state.query = location.search;
      this.ask();
    } else this.heard({...first, seq: 0}, true);
  }

  /** Take the place of what was there. */
  enter() {
    if (!this.root.isConnected) this.element.replaceChildren(this.root);
  }

  /** The page that is seen: this one, or the one whose place it will take. */
  get visible() {
    return this.cameFrom ?? this;
  }

  /** The same state in another language: a new page, which takes this one's place once it has something to show. */
  async turnLanguage(lang) {
    if (this.turning) return;
    this.turning = true;
    try {
      const content = await this.languages.in(lang), {state, plotly, element} = this;
      Object.assign(state, {lang, chosenLang: lang});
      this.wire.stop(); // an answer in the old language comes too late; what is typed here from now on is the new page's to ask
      this.next = new Page(element, {...content, plotly}, this.wire.ask, this.languages, state, this);
    } catch {
      this.turning = false;
      setText(this.trouble, this.texts.gave_up);
    }
  }

  /** The server refuses the first question of a new page: it starts from the last good answer of the page before. */
  takeUp({good}) {
    if (!good) return this.inherit();
    this.paint(good, false);
    this.controls.update({...good.spec, ...this.state.spec}, good.derived, good.fields);
    this.edits.update(this.state.edits, this.state.switches);
    this.switches.update(this.state.switches, good.choices);
    this.examples.update(good.spec);
    this.header.update({preset: good.preset, compare: this.state.compare, canUndo: this.state.past.length > 0, canRedo: this.state.future.length > 0});
    this.present.show(this.state.present);
    this.good = good;
    return undefined;
  }

  /** What the page before kept open, and Plotly's share of it. */
  inherit() {
    const before = this.cameFrom;
    if (!before) return;
    this.cameFrom = null;
    before.walk.stop();
    for (const board of [before.figures, ...before.trials.map(t => t.figures)]) board?.update([]);
    if (before.root.classList.contains("no-side")) this.ways.togglePanel();
    this.header.language.focus();
  }

  set(change) {
    this.board.release();
    if (change(this.state) === false) return;
    this.ask();
  }

  /** To another model, or back to an earlier one: its sizes take the place of what stands in the fields. */
  travel(change) {
    this.controls.release();
    this.switches.release();
    this.set(change);
  }

  ask() {
    const page = this.next ?? this;
    page.root.dataset.asking = "true";
    page.wire.send();
  }

  /** From the table of effects: turn a what-if on and show where it acts. */
  tryOut(name, stage) {
    this.state.setSwitch(name, true);
    this.visit(stage);
  }

  /** To a stage, or where it is 0 the one that is shown, from something below it; of another model if one is named. */
  visit(stage, preset = null) {
    const {edits, switches} = this.state;
    if (preset && (this.good?.preset !== preset || edits.length || switches.length)) this.travel(s => s.choosePreset(preset));
    this.choose(stage || this.state.stage);
    this.stage.head.scrollIntoView({behavior: "instant", block: "center"});
    this.stage.title.tabIndex = -1; // what had the focus goes, or is far below
    this.stage.title.focus({preventScroll: true});
  }

  choose(stage) {
    if (stage < 1 || stage > this.fixed.stages.length) return;
    this.state.stage = stage;
    this.map.choose(stage);
    this.ask();
  }

  heard(answer, newest) {
    if (this.cameFrom && !newest) return undefined; // typed on the page before, meanwhile: its answer is on the way
    this.enter();
    if (newest) this.root.dataset.asking = "false";
    if (!answer.ok) {
      if (this.cameFrom) this.takeUp(this.cameFrom);
      if (newest) this.state.wrong = true;
      if (!this.good && answer.linked) this.sketch(answer.linked);
      return this.refused(answer.errors);
    }
    this.good = answer;
    if (newest) this.state.adopt(answer);
    this.paint(answer, newest);
    return undefined;
  }

  paint(answer, newest) {
    const {state} = this, moved = newest && this.stage.current !== undefined && this.stage.current !== answer.stage;
    setText(this.trouble, "");
    this.notRun.replaceChildren();
    this.root.classList.remove("stale");
    this.controls.complain({});
    if (newest) {
      this.controls.update(answer.spec, answer.derived, answer.fields);
      this.edits.update(state.edits, state.switches);
      this.switches.update(state.switches, answer.choices);
      this.examples.update(answer.spec);
      this.header.update({preset: answer.preset, compare: answer.compare, canUndo: state.past.length > 0, canRedo: state.future.length > 0});
      this.address.write(answer.query);
      this.present.show(answer.present);
      this.present.tell(answer);
    }
    this.map.choose(answer.stage);
    this.stage.choose(answer.stage, answer.moe);
    this.stage.ran(answer.ran);
    this.stage.update(answer.facts);
    this.board.update(answer.panels, answer.compare);
    this.legend.update(answer.panels, answer.compare);
    if (newest) this.board.accept();
    this.inspector.update(this.state.select ? answer.inspect : null, newest);
    this.slices.update(answer);
    const edited = answer.edits.length + answer.switches.length > 0, first = edited && !this.root.classList.contains("edited");
    this.root.classList.toggle("edited", edited);
    this.welcome.update({edited, stage: answer.stage});
    if (first) requestAnimationFrame(() => this.board.uncover()); // on a phone the tools of an edit come over the page
    this.tokens.update(answer.tokens);
    this.trials.forEach(trial => trial.look(answer.stage));
    this.quiz.look(answer.stage);
    this.effects.look();
    this.bridge.look();
    this.gpu?.look();
    this.map.update(answer.map);
    this.walk.update(answer);
    this.figures.update(answer.figures);
    this.ledger.update(answer.ledger, answer.parameters);
    const notes = this.pathNote.take(answer.notes, answer.stage);
    this.notes.update(answer.unlinked ? [...notes, this.texts.note_unlinked.replace("{why}", answer.unlinked)] : notes);
    if (moved) this.stage.land(this.covered());
    this.inherit();
    this.root.dataset.seq = answer.seq;
    this.root.dataset.ready = "true";
  }

  /** How much of the window's upper edge the bar covers, and on a narrow screen the row of stages. */
  covered() {
    const bar = this.header.node.offsetHeight, {map} = this;
    return bar + (map.node.offsetWidth > innerWidth / 2 ? map.node.offsetHeight : 0);
  }

  /** Without any picture yet, what a link asks for stands in the fields at least, to be mended there. */
  sketch({spec, derived, fields, stage, moe}) {
    const {state} = this;
    state.stage = stage;
    this.controls.update({...spec, ...state.spec}, derived, fields);
    this.edits.update(state.edits, state.switches);
    this.header.update({preset: null, compare: state.compare, canUndo: state.past.length > 0, canRedo: state.future.length > 0});
    this.map.choose(stage);
    this.stage.choose(stage, moe);
  }

  /** The last good picture stays; each message goes beside what it is about. */
  refused(errors) {
    const rest = this.controls.complain(errors), general = [];
    for (const [name, message] of Object.entries(rest)) {
      const edit = this.state.edits[Number(name.split(".")[1])];
      if (name === "switches") this.switches.complain(message);
      else if (!(name.startsWith("edits.") && edit && this.board.refuse(edit, message))) general.push(message);
    }
    setText(this.trouble, general.join(" "));
    this.leadTo(this.controls.wrong(errors));
    this.root.classList.add("stale");
    this.root.dataset.ready = "true";
  }

  /** Above the greyed stage, the way to a field whose text was refused. */
  leadTo(field) {
    const go = () => {
      this.root.classList.remove("no-side");
      field.input.focus({preventScroll: true});
      field.input.scrollIntoView({behavior: "instant", block: "center"});
    };
    this.notRun.replaceChildren(...(field ? [h("button", {type: "button", onclick: go}, this.texts.not_run.replace("{field}", field.name))] : []));
  }

  /** An answer is overdue, or came at last. */
  slow(on) {
    const {trouble, texts: {slow}} = this;
    this.root.classList.toggle("waiting", on);
    if (on || trouble.textContent === slow) setText(trouble, on ? slow : "");
  }

  silent(still) {
    setText(this.trouble, this.texts[still ? "silent" : "away"]);
    clearTimeout(this.again);
    if (!still) this.again = setTimeout(() => this.root.isConnected && this.ask(), AGAIN_MS);
  }
}

/** Called by the component's own script once its styles are there. */
export async function mount(element, {plotly, ...english}, update) {
  const ask = asker(update), languages = new Texts(english, ask), state = new State();
  state.chosenLang = chosenLanguage();
  state.lang = state.chosenLang || browserLanguage();
  const content = await languages.in(state.lang).catch(() => {
    state.lang = "en";
    return english;
  });
  return new Page(element, {...content, plotly}, ask, languages, state);
}
