// Which exercises are done, and at which try. Kept in this browser alone; what is found there is not trusted.

const KEY = "explorer.studio";
const whole = x => Number.isInteger(x) && x >= 0 && x <= 1e6;
const table = (x, fits) => new Map(Object.entries(x && typeof x === "object" ? x : {}).filter(([, value]) => fits(value)));

/** What this browser remembers; storage may be closed to us, or hold something else. */
function kept() {
  let found = {};
  try {
    found = JSON.parse(localStorage.getItem(KEY)) ?? {};
  } catch {}
  return {
    tries: table(found.tries, whole),
    seeds: table(found.seeds, whole),
    finished: table(found.done, one => one && whole(one.at) && typeof one.right === "boolean"),
    last: typeof found.current === "string" ? found.current : "",
  };
}

export class Progress {
  /** changed() when another tab went on, or began anew. */
  constructor(changed = () => {}) {
    Object.assign(this, kept());
    addEventListener("storage", ({key}) => {
      if (key !== KEY && key !== null) return;
      const {tries, finished} = kept();
      Object.assign(this, {tries, finished});
      changed();
    });
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
    for (const one of [this.tries, this.seeds, this.finished]) one.clear();
    this.last = "";
    this.write();
  }

  /** What another tab has done stays done, and its first time counts. */
  save() {
    const {tries, seeds, finished} = kept();
    for (const [name, n] of tries) this.tries.set(name, Math.max(n, this.tries.get(name) ?? 0));
    this.seeds = new Map([...seeds, ...this.seeds]);
    this.finished = new Map([...this.finished, ...finished]);
    this.write();
  }

  write() {
    const all = {tries: Object.fromEntries(this.tries), seeds: Object.fromEntries(this.seeds), done: Object.fromEntries(this.finished), current: this.last};
    try {
      localStorage.setItem(KEY, JSON.stringify(all));
    } catch {}
  }
}
