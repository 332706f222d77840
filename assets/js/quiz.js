// Questions about the stage and the run that are shown, each with four answers; the cell asked about is covered.

import {h, setHtml, setText} from "./dom.js";
import {fold} from "./fold.js";
import {Part} from "./part.js";

/** One question; said(right, first try) after each answer. */
class Question {
  constructor({kind, about, index, text, options, answer, why, hint}, texts, said) {
    Object.assign(this, {about, index, answer, texts, said, kind, solved: false, tries: 0, taken: []});
    this.place = JSON.stringify([kind, about, index, answer]); // the same in every language
    this.key = JSON.stringify([text, options, answer]);
    this.buttons = options.map((option, n) => h("button", {type: "button", class: "answer", dataset: {answer: n}, html: option, onclick: () => this.take(n)}));
    this.verdict = h("p", {class: "verdict", role: "status"});
    this.why = h("p", {class: "why", hidden: true, html: why});
    this.hint = h("p", {class: "quiet", hidden: true, html: hint, dataset: {hint: ""}});
    this.node = h("li", {dataset: {question: kind}}, h("p", {class: "asks", html: text}), h("div", {class: "answers"}, ...this.buttons), this.verdict, this.hint, this.why);
  }

  take(n) {
    if (this.solved) return;
    const held = document.activeElement === this.buttons[n];
    this.tries += 1;
    this.taken.push(n);
    this.solved = n === this.answer;
    this.buttons[n].classList.add(this.solved ? "right" : "wrong");
    this.buttons[n].disabled = !this.solved;
    if (this.solved) this.buttons.forEach((button, at) => { button.disabled = at !== n; });
    else if (held) this.buttons.find(button => !button.disabled)?.focus(); // a button that goes dead would drop the focus
    setText(this.verdict, this.texts[this.solved ? "quiz_right" : "quiz_wrong"]);
    this.why.hidden = !this.solved;
    this.hint.hidden = this.solved;
    this.said();
  }
}

export class Quiz {
  /** board: of the page, whose cells are covered; state: for stage and head; before: the quiz in the other language. */
  constructor({texts, ask, compose, state, board, before = null}) {
    Object.assign(this, {texts, board, state, before, questions: []});
    this.list = h("ol", {class: "questions"});
    this.score = h("p", {class: "quiet", dataset: {quiz: "score"}});
    this.more = h("button", {type: "button", class: "plain", dataset: {quiz: "more"}, onclick: () => { state.quizSeed += 1; this.part.refresh(); }}, texts.quiz_more);
    this.error = h("p", {class: "error", role: "alert", dataset: {errorFor: "quiz"}});
    this.node = fold("quiz", {title: texts.quiz, class: "folded quiz", dataset: {quiz: ""}},
      h("p", {class: "lead"}, texts.quiz_lead), this.error, this.list, h("div", {class: "quiz-foot"}, this.more, this.score));
    const extra = () => ({stage: state.stage, quiz: {seed: state.quizSeed, head: state.slice.h}});
    this.part = new Part({name: "quiz", node: this.node, texts, ask, compose, extra, show: found => this.show(found), fail: errors => this.fail(errors)});
    this.node.addEventListener("toggle", () => this.look());
  }

  /** After each picture, with its stage. */
  look(stage = this.seen) {
    this.seen = stage;
    this.part.open = this.node.open;
    this.part.refresh();
    this.cover();
  }

  fail(errors) {
    setText(this.error, errors.quiz ?? errors[""] ?? "");
  }

  /** A question that asks the same as before keeps its answers; its explanation is this run's. */
  show({stage, questions}) {
    this.fail({});
    this.stage = stage;
    const before = new Map(this.questions.map(q => [q.key, q]));
    this.questions = questions.map(about => {
      const asked = new Question(about, this.texts, () => this.marked()), kept = before.get(asked.key);
      if (kept) setHtml(kept.why, about.why);
      return kept ?? asked;
    });
    this.list.replaceChildren(...this.questions.map(q => q.node));
    this.takeUp(this.before);
    this.before = null;
    this.marked();
  }

  /** What was answered in the other language stays answered. */
  takeUp(before) {
    before?.questions.forEach(({place, taken}, n) => {
      const question = this.questions[n];
      if (question?.place === place) taken.forEach(answer => question.take(answer));
    });
  }

  marked() {
    const right = this.questions.filter(q => q.solved && q.tries === 1).length;
    setText(this.score, this.texts.quiz_score.replace("{n}", right).replace("{all}", this.questions.length));
    this.cover();
  }

  /** Hide the number of each cell that is asked about and not yet found, where its question can be seen too. */
  cover() {
    for (const cell of this.board.node.querySelectorAll(".covered")) cell.classList.remove("covered");
    if (!this.node.open || this.state.present || this.stage !== this.seen) return;
    for (const {kind, solved, about, index} of this.questions) {
      if (kind !== "value" || solved) continue;
      this.board.node.querySelector(`[data-q="${CSS.escape(about)}"][data-i="${index.join(",")}"]`)?.classList.add("covered");
    }
  }
}
