// The Studio: eight exercises, one open at a time, marked by the server; what is done stays in this browser.

import {h, setHtml, setText} from "./dom.js";
import {fold} from "./fold.js";
import {land} from "./land.js";
import {Progress} from "./studio_progress.js";
import {VIEWS} from "./studio_views.js";
import {Wire} from "./wire.js";

const FROM_MEMORY = ["where", "order"]; // while these are answered the map would give them away

export class Studio {
  /** visit(stage, preset): to a stage of the page; state: keeps what is typed through a change of language. */
  constructor({texts, ask, compose, state, visit}) {
    Object.assign(this, {texts, visit, state, steps: [], current: "", near: false, waiting: false});
    this.progress = new Progress(() => this.steps.length && this.update());
    this.drafts = state.studio ??= new Map();
    this.error = h("p", {class: "error", role: "alert", dataset: {errorFor: "studio"}});
    this.count = h("span", {class: "studio-count num", dataset: {studio: "count"}});
    this.stepper = h("nav", {class: "studio-steps", "aria-label": texts.studio_steps});
    this.number = h("p", {class: "eyebrow"});
    this.title = h("h3", {tabindex: "-1"});
    this.lead = h("p", {class: "studio-lead"});
    this.cover = h("p", {class: "quiet studio-cover"}, texts.studio_covered);
    this.body = h("div", {class: "studio-body"});
    this.verdict = h("p", {class: "studio-verdict", role: "status"});
    this.next = h("button", {type: "button", class: "plain", dataset: {studio: "next"}, hidden: true, onclick: () => this.open(this.steps[this.place() + 1].name, true)}, texts.studio_next);
    this.over = h("button", {type: "button", class: "link", dataset: {studio: "over"}, onclick: () => this.startOver()}, texts.studio_over);
    this.over.addEventListener("blur", () => this.calm());
    this.finish = h("p", {class: "studio-finish", role: "status"});
    this.sheet = h("section", {class: "studio-sheet", hidden: true}, this.number, this.title, this.lead, this.cover, this.body, this.verdict, this.next);
    this.node = fold("studio", {title: texts.studio, class: "folded studio", dataset: {studio: ""}},
      h("p", {class: "lead"}, texts.studio_lead), this.error, h("div", {class: "studio-bar"}, this.stepper, this.count, this.over), this.sheet, this.finish);
    this.wire = new Wire({ask, compose: () => ({lang: compose().lang, want: ["studio"], studio: this.question}), heard: answer => this.heard(answer), silent: still => this.silent(still)});
    this.node.addEventListener("toggle", () => this.look());
    this.node.addEventListener("keydown", event => keepKeys(event));
    this.sheet.addEventListener("input", () => this.keep());
    new IntersectionObserver(entries => { this.near = entries.at(-1).isIntersecting; this.look(); }, {rootMargin: "120px"}).observe(this.node);
    new IntersectionObserver(entries => { this.seen = entries.at(-1).isIntersecting; this.hideMap(); }).observe(this.body);
  }

  /** From the bar on top. */
  show() {
    this.node.open = true;
    land(this.node);
    this.node.querySelector("summary").focus({preventScroll: true});
    this.look();
  }

  look() {
    if (this.node.open && this.near && !this.asked) this.open(this.progress.current || FROM_MEMORY[0]);
    this.hideMap();
  }

  hideMap() {
    const hidden = this.node.open && this.seen && FROM_MEMORY.includes(this.current) && !this.progress.done(this.current);
    this.cover.hidden = !hidden;
    this.node.closest(".mbx")?.classList.toggle("recalling", Boolean(hidden));
  }

  place() {
    return this.steps.findIndex(({name}) => name === this.current);
  }

  open(name, focus = false) {
    this.asked = true;
    this.focus = focus;
    this.keep();
    this.view?.leave?.();
    this.view = null;
    this.current = this.progress.current = this.progress.done(FROM_MEMORY[0]) && Object.hasOwn(VIEWS, name) ? name : FROM_MEMORY[0];
    this.send({});
  }

  /** Ask for the task of the current exercise, or for marks. */
  send(more) {
    const {current} = this;
    this.question = {exercise: current, seed: this.progress.seed(current), ...more};
    this.wire.send();
  }

  check(answer, counts = true) {
    if (this.waiting) return;
    Object.assign(this, {waiting: true, counts});
    this.send({answer});
  }

  heard(answer) {
    this.waiting = false;
    if (!answer.ok) return setText(this.error, answer.errors.studio ?? Object.values(answer.errors).join(" "));
    setText(this.error, "");
    const {exercise, seed, task} = answer.studio;
    if (exercise !== this.current || seed !== this.progress.seed(exercise)) return undefined;
    return task ? this.start(answer.studio) : this.marked(answer.studio);
  }

  silent(still) {
    this.waiting = still;
    setText(this.error, still ? this.texts.silent : this.texts.gave_up);
  }

  start({exercise, exercises, task}) {
    this.steps = exercises;
    const {texts} = this, again = seed => { this.progress.reseed(exercise, seed); this.send({}); };
    const help = {texts, title: task.title, check: (answer, counts) => this.check(answer, counts), visit: this.visit, again, changed: () => { this.keep(); setHtml(this.verdict, ""); }};
    this.view?.leave?.();
    this.view = new VIEWS[exercise](task, help, this.drafts.get(this.draftKey()));
    setText(this.number, texts.studio_of.replace("{n}", this.place()));
    setHtml(this.title, task.title);
    setHtml(this.lead, task.lead);
    setHtml(this.verdict, "");
    this.body.replaceChildren(this.view.node);
    this.sheet.hidden = false;
    this.next.hidden = true;
    this.update();
    const given = this.progress.done(exercise)?.answer;
    if (given !== undefined) this.check(given, false); // answered once: shown again, not asked again
    if (this.focus) {
      this.title.focus({preventScroll: true});
      land(this.sheet);
    }
    this.focus = false;
  }

  marked(found) {
    const {current, counts} = this, wrong = found.marks.includes(false);
    if (counts && (wrong || found.done)) this.progress.tried(current);
    if (counts && found.done) this.progress.finish(current, {right: !wrong || current === "aloud", answer: found.more.once});
    setHtml(this.verdict, found.verdict);
    this.verdict.classList.toggle("done", found.done);
    this.view.take(found);
    this.update();
    this.next.hidden = !found.done || this.place() === this.steps.length - 1;
  }

  update() {
    const {texts, progress, steps} = this, all = steps.length, n = steps.filter(({name}) => progress.done(name)).length;
    const first = steps.filter(({name}) => progress.done(name)?.at === 1 && progress.done(name).right).length;
    this.drawSteps();
    setText(this.count, texts.studio_progress.replace("{n}", n).replace("{all}", all));
    setText(this.finish, n === all ? texts.studio_finish.replace("{first}", first) : "");
    this.over.hidden = !n && !progress.begun;
    this.hideMap();
  }

  drawSteps() {
    const {texts, progress, steps} = this;
    if (this.stepper.children.length !== steps.length) {
      this.stepper.replaceChildren(...steps.map(({name}, n) => h("button", {type: "button", class: "studio-step num", dataset: {exercise: name}, onclick: () => this.open(name)}, String(n))));
    }
    steps.forEach(({name, title}, n) => {
      const button = this.stepper.children[n], done = progress.done(name), locked = n > 0 && !progress.done(FROM_MEMORY[0]);
      const state = locked ? texts.studio_locked : !done ? texts.studio_state_open : done.right ? texts.studio_state_done.replace("{n}", done.at) : texts.studio_state_missed;
      const plain = h("span", {html: title}).textContent, label = `${texts.studio_step.replace("{n}", n).replace("{title}", plain)} (${state})`;
      button.classList.toggle("done", Boolean(done));
      button.classList.toggle("missed", Boolean(done && !done.right));
      button.disabled = locked;
      Object.assign(button, {title: label, ariaLabel: label, ariaCurrent: name === this.current ? "step" : "false"});
    });
  }

  draftKey() {
    return `${this.current} ${this.progress.seed(this.current)}`;
  }

  keep() {
    if (this.view?.answer) this.drafts.set(this.draftKey(), this.view.answer());
  }

  /** The second press forgets. */
  startOver() {
    if (!this.sure) {
      this.sure = true;
      return setText(this.over, this.texts.studio_sure);
    }
    this.view = null; // what stands in it is forgotten too
    this.drafts.clear();
    this.progress.clear();
    this.calm();
    return this.open(FROM_MEMORY[0], true);
  }

  calm() {
    this.sure = false;
    setText(this.over, this.texts.studio_over);
  }
}

/** Keys that mean something here and, elsewhere on the page, another stage, a walk or an undo of edits. */
function keepKeys(event) {
  const plain = !event.ctrlKey && !event.metaKey && /^(Arrow.*|Home|End|[1-8p ])$/i.test(event.key);
  const undoing = (event.ctrlKey || event.metaKey) && /^[zy]$/i.test(event.key) && event.target.closest("input[type=text]");
  if (plain || undoing) event.stopPropagation();
}
