// Questions to the server: one under way at a time, the newest waiting one wins, old answers are dropped.

const RETRY_MS = [300, 1000, 3000, 8000];

export class Wire {
  /** ask(text) -> Promise<text>; compose() -> the newest question; heard(answer); silent(still trying); seq: the last number used. */
  constructor({ask, compose, heard, silent, seq = 0}) {
    Object.assign(this, {ask, compose, heard, silent, seq, painted: seq, busy: false, wanted: false});
  }

  /** Ask for the current state; returns the number of the question that covers it. */
  send() {
    this.seq += 1;
    this.wanted = true;
    if (!this.busy) this.run();
    return this.seq;
  }

  async run() {
    this.busy = true;
    try {
      while (this.wanted) {
        this.wanted = false;
        const answer = await this.persist();
        if (answer && answer.seq > this.painted) {
          this.painted = answer.seq;
          this.heard(answer, answer.seq === this.seq);
        }
      }
    } finally {
      this.busy = false;
    }
  }

  /** The answer to the newest question, or null after several silent tries. */
  async persist() {
    for (const pause of [...RETRY_MS, 0]) {
      try {
        return JSON.parse(await this.ask(JSON.stringify({...this.compose(), seq: this.seq})));
      } catch {
        this.silent(pause > 0);
        await new Promise(done => setTimeout(done, pause));
        this.wanted = false; // whatever was asked meanwhile is covered by the next try
      }
    }
    return null;
  }
}
