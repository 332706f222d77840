// One question to the server and one answer, as text; tells a refusal from a silence. Knows nothing of the page.

export const LONGEST = 200_000; // characters of a question that the server reads
const AGAIN = new Set([408, 425, 429]); // refusals that mean "later"
const ADDRESS = "component_server";
const HALVES = /\\(?:\\|ud[89a-f][0-9a-f]{2})/g; // as JSON.stringify writes half a character; an escaped backslash is skipped

/** The server will not take this question, however often it is asked. why: "too_large" or "not_taken"; status: of HTTP. */
export class Refusal extends Error {
  constructor(why, status = 0) {
    super(why);
    Object.assign(this, {why, status});
  }
}

/** A question without half characters, which are no valid JSON. */
export const whole = text => text.replace(HALVES, found => (found === "\\\\" ? found : "\ufffd"));

/** update(text) -> Promise<text>: the platform's call, which hides the status. Rejects with a Refusal, or another error for silence. */
export function asker(update) {
  return async question => {
    const text = whole(question), since = performance.now();
    if (text.length > LONGEST) throw new Refusal("too_large");
    let answer, failure = null;
    try {
      answer = await update(text);
    } catch (error) {
      failure = error;
    }
    if (typeof answer === "string") return answer;
    const status = await statusSince(since);
    if (status >= 400 && status < 500 && !AGAIN.has(status)) throw new Refusal(status === 413 ? "too_large" : "not_taken", status);
    throw failure ?? new Error("no answer");
  };
}

/** The HTTP status of the newest question, where the browser tells it, else 0. */
async function statusSince(since) {
  await new Promise(done => setTimeout(done, 30)); // the entry is written a moment after the answer
  const entries = performance.getEntriesByType("resource").filter(entry => entry.startTime >= since && entry.name.includes(ADDRESS));
  performance.clearResourceTimings(); // the browser keeps 250 of them, and then no new ones
  return entries.at(-1)?.responseStatus ?? 0;
}

/** What `promise` gives, or an error once `ms` have passed. */
export function inTime(promise, ms) {
  let timer;
  const late = new Promise((_, failed) => { timer = setTimeout(() => failed(new Error("late")), ms); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
