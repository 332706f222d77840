// One question to the server and one answer, as text; tells a refusal from a silence. Knows nothing of the page.

export const LONGEST = 200_000; // characters of a question that the server reads
const AGAIN = new Set([408, 425, 429]); // refusals that mean "later"
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
    const text = whole(question);
    if (text.length > LONGEST) throw new Refusal("too_large");
    const call = watched(() => update(text));
    let answer, failure = null;
    try {
      answer = await call.result;
    } catch (error) {
      failure = error;
    }
    if (typeof answer === "string") return answer;
    const {status} = call;
    if (status >= 400 && status < 500 && !AGAIN.has(status)) throw new Refusal(status === 413 ? "too_large" : "not_taken", status);
    throw failure ?? new Error("no answer");
  };
}

/** {result, status}: the HTTP status of the request that `start` makes at once, when it has come; else 0. */
function watched(start) {
  const call = {result: null, status: 0}, {fetch} = globalThis;
  globalThis.fetch = async (...given) => {
    const response = await fetch.apply(globalThis, given);
    call.status = response.status;
    return response;
  };
  try {
    call.result = start();
  } finally {
    globalThis.fetch = fetch;
  }
  return call;
}

/** What `promise` gives, or an error once `ms` have passed. */
export function inTime(promise, ms) {
  let timer;
  const late = new Promise((_, failed) => { timer = setTimeout(() => failed(new Error("late")), ms); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
