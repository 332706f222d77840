// Which exercises are done, and at which try. Kept in this browser alone; what is found there is not trusted.

const KEY = "explorer.studio";
const whole = x => Number.isInteger(x) && x >= 0 && x <= 1e6;
const table = (x, fits) => new Map(Object.entries(x && typeof x === "object" ? x : {}).filter(([, value]) => fits(value)));

export class Progress {
  constructor() {
    let kept = {};
    try {
      kept = JSON.parse(localStorage.getItem(KEY)) ?? {};
    } catch {} // storage may be closed to us, or hold something else
    this.tries = table(kept.tries, whole);
    this.seeds = table(kept.seeds, whole);
    this.finished = table(kept.done, one => one && whole(one.at) && typeof one.right === "boolean");
    this.last = typeof kept.current === "string" ? kept.current : "";
  }

  get current() {
    return this.last;
  }

  set current(name) {
    this.last = name;
    this.save();
  }

  get begun() {
    return this.tries.size > 0;
  }

  done(name) {
    return this.finished.get(name);
  }

  /** Which of an exercise's cases is shown. */
  seed(name) {
    return this.seeds.get(name) ?? 0;
  }

  reseed(name, seed) {
    this.seeds.set(name, seed);
    this.save();
  }

  tried(name) {
    this.tries.set(name, (this.tries.get(name) ?? 0) + 1);
    this.save();
  }

  /** The first time counts. answer: what was answered, where that is done only once. */
  finish(name, {right, answer}) {
    if (!this.finished.has(name)) this.finished.set(name, {at: this.tries.get(name) ?? 1, right, answer});
    this.save();
  }

  clear() {
    for (const kept of [this.tries, this.seeds, this.finished]) kept.clear();
    this.last = "";
    this.save();
  }

  save() {
    const kept = {tries: Object.fromEntries(this.tries), seeds: Object.fromEntries(this.seeds), done: Object.fromEntries(this.finished), current: this.last};
    try {
      localStorage.setItem(KEY, JSON.stringify(kept));
    } catch {}
  }
}
