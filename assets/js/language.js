// The page's language: the visitor's choice, kept in the link, or else the browser's. Knows nothing of the page.

import {inTime} from "./asking.js";

const LOST_MS = 20000;
const KNOWN = ["en", "zh"];
const REAL = {en: "en", zh: "zh-Hans"}; // as documents say it

/** The language that the address asks for, or "" where it leaves the choice to the browser. */
export function chosenLanguage(search = location.search) {
  const given = new URLSearchParams(search).get("lang");
  return KNOWN.includes(given) ? given : "";
}

/** The first of the browser's languages that there are texts in. */
export function browserLanguage(languages = navigator.languages ?? [navigator.language]) {
  return languages.map(tag => String(tag).toLowerCase().split("-")[0]).find(tag => KNOWN.includes(tag)) ?? "en";
}

export const otherLanguage = lang => (lang === "zh" ? "en" : "zh");

export function declare(lang) {
  document.documentElement.lang = REAL[lang];
}

/** {fixed, first} in a language; English came with the page. */
export class Texts {
  constructor(english, ask) {
    Object.assign(this, {ask, known: new Map([["en", Promise.resolve(english)]])});
  }

  /** Rejects where the server does not answer; the next call tries again. */
  in(lang) {
    if (!this.known.has(lang)) {
      const fetched = inTime(this.ask(JSON.stringify({want: ["fixed"], lang})), LOST_MS).then(text => JSON.parse(text)).then(answer => {
        if (!answer.ok) throw new Error(Object.values(answer.errors).join(" "));
        return answer;
      });
      fetched.catch(() => this.known.delete(lang));
      this.known.set(lang, fetched);
    }
    return this.known.get(lang);
  }
}
