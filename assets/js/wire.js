// Questions to the server: one under way at a time, the newest waiting one wins, old answers are dropped.

import {inTime, Refusal} from "./asking.js";

const RETRY_MS = [300, 1000, 3000, 8000];
const SLOW_MS = 3000; // without an answer: say so
const LOST_MS = 20000; // without an answer: ask again

export class Wire {
  /**
   * ask(text) -> Promise<text>; compose() -> the newest question; heard(answer, newest); silent(still trying);
   * slow(whether an answer is overdue); explain(Refusal) -> what to tell; seq: the last number used.
   */
  constructor({ask, compose, heard, silent = () => {}, slow = () => {}, explain = ({why}) => why, seq = 0}) {
    Object.assign(this, {ask, compose, heard, silent, slow, explain, seq, painted: seq, busy: false, wanted: false, stopped: false});
  }

  /** Ask for the current state; returns the number of the question that covers it. */
  send() {
    if (this.stopped) return this.seq;
    this.seq += 1;
    this.wanted = true;
    if (!this.busy) this.run();
    return this.seq;
  }

  /** Ask and hear nothing more. */
  stop() {
    Object.assign(this, {stopped: true, wanted: false});
  }

  async run() {
    this.busy = true;
    try {
      while (this.wanted) {
        this.wanted = false;
        this.take(await this.persist());
      }
    } finally {
      this.busy = false;
    }
  }

  take(answer) {
    if (this.stopped || !answer || answer.seq <= this.painted) return;
    this.painted = answer.seq;
    this.heard(answer, answer.seq === this.seq);
  }

  /** The answer to the newest question, or null after several silent tries. */
  async persist() {
    for (const pause of [...RETRY_MS, 0]) {
      try {
        return await this.once(this.seq);
      } catch {
        if (this.stopped) return null;
        this.silent(pause > 0);
        await new Promise(done => setTimeout(done, pause));
        this.wanted = false; // whatever was asked meanwhile is covered by the next try
      }
    }
    return null;
  }

  /** One question and its answer; an answer without a number of its own is the one to this question. */
  async once(seq) {
    const overdue = setTimeout(() => this.stopped || this.slow(true), SLOW_MS);
    const read = text => {
      const answer = JSON.parse(text);
      return {...answer, seq: typeof answer.seq === "number" ? answer.seq : seq};
    };
    const asked = this.ask(JSON.stringify({...this.compose(), seq}));
    try {
      return read(await inTime(asked, LOST_MS));
    } catch (error) {
      if (error instanceof Refusal) return {ok: false, seq, errors: {"": this.explain(error)}};
      asked.then(text => this.take(read(text))).catch(() => {}); // better late than never, unless a newer one was painted
      throw error;
    } finally {
      clearTimeout(overdue);
      if (!this.stopped) this.slow(false);
    }
  }
}
