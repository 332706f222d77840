// Numbers as people read and type them: four significant digits, a real minus sign, ASCII accepted.

const MINUS = "\u2212";
export const LARGEST = 3.4e38; // the largest magnitude that float32 holds

/** 1.41421 -> "1.414", -0.5 -> "−0.5", -Infinity -> "−∞", 1e-9 -> "1e−9". */
export function short(x) {
  if (!Number.isFinite(x)) return special(x);
  const size = Math.abs(x);
  const text = size !== 0 && (size < 1e-4 || size >= 1e5)
    ? x.toExponential(3).replace(/\.?0+e/, "e").replace("e+", "e")
    : String(Number(x.toPrecision(4)));
  return text.replaceAll("-", MINUS);
}

/** Every digit that float32 holds, with a real minus sign. */
export function full(x) {
  return Number.isFinite(x) ? String(x).replace("e+", "e").replaceAll("-", MINUS) : special(x);
}

/** Nine significant digits: more than float32 holds, so that a difference from float64 shows. */
export const precise = x => full(Number.isFinite(x) ? Number(x.toPrecision(9)) : x);

/** The shortest number that float32 takes for x: 0.9 for 0.899999976, as somebody would type it. */
export function typed(x) {
  let digits = 1;
  while (digits < 9 && Math.fround(Number(x.toPrecision(digits))) !== Math.fround(x)) digits++;
  return full(Number.isFinite(x) ? Number(x.toPrecision(digits)) : x);
}

/** A change: always with its sign. */
export function signed(x) {
  return x > 0 ? "+" + short(x) : x === 0 ? "±0" : short(x);
}

function special(x) {
  return Number.isNaN(x) ? "NaN" : x > 0 ? "∞" : MINUS + "∞";
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const WIDE = /[\uff01-\uff5e]/g; // full-width signs and digits, as a Chinese keyboard writes them
const UNFINISHED = /^[+-]?(\d*\.?\d*e?[+-]?)$/i;

/** What was typed -> {x} or {problem: "empty" | "text" | "large", unfinished}. "−∞" is read where it is allowed. */
export function read(text, allowMinusInfinity = false) {
  let plain = text.trim().replace(WIDE, wide => String.fromCharCode(wide.charCodeAt(0) - 0xfee0)).replaceAll(MINUS, "-");
  if (plain === "") return {problem: "empty"};
  if (allowMinusInfinity && /^-(∞|inf(inity)?)$/i.test(plain)) return {x: -Infinity};
  if (/^[^.,]*,[^.,]*$/.test(plain)) plain = plain.replace(",", ".");
  if (!NUMBER.test(plain)) return {problem: "text", unfinished: UNFINISHED.test(plain)};
  const x = Number(plain);
  return Math.abs(x) <= LARGEST ? {x} : {problem: "large"};
}

/** 1536 -> "1.5 KiB". */
export function bytes(n) {
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (n < 1024 || unit === "GiB") return `${Number(n.toPrecision(3))} ${unit}`;
    n /= 1024;
  }
}

/** 12345 -> "12.3 k". */
export function count(n) {
  for (const unit of ["", " k", " M", " G", " T"]) {
    if (n < 1000 || unit === " T") return `${Number(n.toPrecision(3))}${unit}`;
    n /= 1000;
  }
}
