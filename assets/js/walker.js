// The marker on the block map: one token on its way along the stream, as query, key and value where it is all three.

const SVG = "http://www.w3.org/2000/svg";
/** Where the lines of the map stand, from its left edge. */
export const LANE = {stream: 20, branch: 60, q: 47, k: 60, v: 75};
const MOVE_MS = 900;
const LAST = 9; // the second addition, where the walk leaves the block

const make = (tag, attributes) => {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
};

/** The ways from one stop to the next for a token that takes `lane` between stages 2 and 5; y: middles of the map's rows. */
function ways(y, tall, lane) {
  const {stream: S, branch: A} = LANE, x = LANE[lane], bend = tall[2] * 0.42, lead = tall[0] * 0.32, joins = lane === "v" ? 5 : 4;
  const over = (from, to, x1, x2) => `C${x1} ${(from + to) / 2} ${x2} ${(from + to) / 2} ${x2} ${to}`;
  const out = (from, to) => `L${A} ${to - 26} C${A} ${to - 8} ${A - 8} ${to} ${A - 22} ${to} L${S} ${to}`;
  const lay = stage => {
    if (stage < 3 || stage > joins) return `L${A} ${y[stage]}`;
    const split = stage === 3 ? over(y[2], y[2] + bend, A, x) : "";
    const join = stage === joins ? `L${x} ${y[joins] - bend} C${x} ${y[joins] - bend / 2} ${A} ${y[joins] - bend / 2} ${A} ${y[joins]}` : `L${x} ${y[stage]}`;
    return split + join;
  };
  return [
    `M${S} ${y[0] - 4}`,
    `L${S} ${y[0] + lead} ${over(y[0] + lead, y[1] - 5, S, A)} L${A} ${y[1]}`,
    lay(2), lay(3), lay(4), lay(5), lay(6),
    out(y[6], y[7]),
    `L${S} ${y[7] + lead} ${over(y[7] + lead, y[8] - 5, S, A)} L${A} ${y[8]}`,
    out(y[8], y[9]),
  ];
}

class Dot {
  constructor(lane) {
    this.lane = lane;
    this.node = make("circle", {class: `walker-dot lane-${lane}`, r: 7});
    this.path = make("path", {d: ""});
  }

  lay(y, tall) {
    let d = "";
    this.stops = ways(y, tall, this.lane).map(way => {
      d += way;
      this.path.setAttribute("d", d);
      return d.length ? this.path.getTotalLength() : 0;
    });
  }

  /** at: a stop, or a place between two. */
  put(at) {
    const low = Math.floor(at), from = this.stops[low], to = this.stops[Math.min(LAST, low + 1)];
    const {x, y} = this.path.getPointAtLength(from + (to - from) * (at - low));
    this.node.setAttribute("cx", x);
    this.node.setAttribute("cy", y);
  }
}

export class Walker {
  constructor() {
    this.dots = ["v", "k", "q"].map(lane => new Dot(lane));
    this.node = make("svg", {class: "map-walker", "aria-hidden": "true", width: 92, height: 0});
    this.node.append(...this.dots.map(dot => dot.node));
    this.hide();
  }

  lay(y, tall, height) {
    this.node.setAttribute("height", height);
    this.dots.forEach(dot => dot.lay(y, tall));
    if (this.at !== null) this.put(this.at);
  }

  hide() {
    cancelAnimationFrame(this.frame);
    this.at = null;
    this.node.dataset.at = "";
  }

  put(at) {
    this.at = at;
    const near = String(Math.round(at));
    if (this.node.dataset.at !== near) this.node.dataset.at = near;
    if (this.dots[0].stops) this.dots.forEach(dot => dot.put(at));
  }

  /** Move to a stop; at once where motion is not wanted, or where the marker was not to be seen. */
  go(to, calm, speed = 1) {
    cancelAnimationFrame(this.frame);
    if (calm || this.at === null || this.at === to) return this.put(to);
    const from = this.at, begin = performance.now();
    const move = now => {
      const part = Math.min(1, Math.max(0, (now - begin) * speed / MOVE_MS)), eased = part * part * (3 - 2 * part);
      this.put(part === 1 ? to : from + (to - from) * eased);
      if (part < 1) this.frame = requestAnimationFrame(move);
    };
    this.frame = requestAnimationFrame(move);
    return undefined;
  }
}
