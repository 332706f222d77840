// Value -> colour. The stops come from the server (one palette for page and figures); this makes lookup tables.

const STEPS = 64; // each side of zero; far more than an eye tells apart
const THUMB = 0.68; // thumbnails stand between number cells and heatmaps
let palette = {};
let tables = {};
let watching = false;
const listeners = new Set();

export const theme = () => (document.body.classList.contains("dark") ? "dark" : "light");
export const role = name => palette[theme()][name];

/** Start with the palette; `whenThemeChanges` callbacks run each time the page turns light or dark. */
export function start(given) {
  palette = given;
  build();
  listeners.clear(); // of a page that this one takes the place of
  if (watching) return;
  watching = true;
  let now = theme();
  new MutationObserver(() => {
    if (theme() === now) return;
    now = theme();
    build();
    listeners.forEach(call => call());
  }).observe(document.body, {attributes: true, attributeFilter: ["class"]});
}

export const whenThemeChanges = call => listeners.add(call);

function build() {
  const stops = palette[theme()];
  tables = {
    cell: {signed: table(stops.cell_signed, 2 * STEPS, 1, true), unit: table(stops.cell_unit, STEPS, 1, false)},
    thumb: {signed: table(stops.signed, 2 * STEPS, THUMB, true), unit: table(stops.unit, STEPS, THUMB, false)},
    heat: {signed: table(stops.signed, 2 * STEPS, 1, true), unit: table(stops.unit, STEPS, 1, false)},
    state: Object.fromEntries(["future", "padded", "minus_infinity", "nan", "infinity"].map(s => [s, rgb(stops[s])])),
  };
  for (const kind of ["cell", "heat"]) {
    for (const list of Object.values(tables[kind])) list.css = list.map(([r, g, b]) => `rgb(${r} ${g} ${b})`);
  }
}

const rgb = hex => [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16));

function table(stops, steps, reach, around) {
  return Array.from({length: steps + 1}, (_, n) => {
    let at = n / steps;
    at = around ? 0.5 + (at - 0.5) * reach : at * reach;
    const right = Math.max(1, stops.findIndex(([place]) => place >= at - 1e-9));
    const [from, a] = stops[right - 1], [to, b] = stops[right];
    const part = Math.min(1, Math.max(0, (at - from) / (to - from)));
    const [p, q] = [rgb(a), rgb(b)];
    return p.map((c, i) => Math.round(c + (q[i] - c) * part));
  });
}

const kind = scale => (scale === "unit" ? "unit" : "signed");

/** Which entry of the table stands for x. Numbers that only name something ("index") have the colour of zero. */
export function step(x, scale, range) {
  if (scale === "index") return STEPS;
  const t = range > 0 ? Math.max(-1, Math.min(1, x / range)) : 0;
  return scale === "unit" ? Math.round(Math.max(0, t) * STEPS) : Math.round((t + 1) * STEPS);
}

export const cellColour = (at, scale) => tables.cell[kind(scale)].css[at];
export const cellRgb = (at, scale) => tables.cell[kind(scale)][at];
export const thumbRgb = (at, scale) => tables.thumb[kind(scale)][at];
export const heatColour = (at, scale) => tables.heat[kind(scale)][at];
export const stateColour = name => tables.state[name];

export const ramp = scale => {
  const css = tables.cell[kind(scale)].css;
  return `linear-gradient(to right, ${css.filter((_, n) => n % 8 === 0).join(", ")})`;
};
