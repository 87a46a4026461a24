// One operator, or one source, in the drawing of the pipeline.

import { setAttribute, setText, svg } from "./dom.js";
import * as figures from "./figures.js";

export const FULL = { width: 164, height: 82, gap: 22, layerGap: 50, pips: 14 };
export const COMPACT = { width: 112, height: 52, gap: 12, layerGap: 34, pips: 8, compact: true };

const ENDING = 4;
const BUSY = 0.7;
const OVERLOADED = 0.9;

export class OperatorNode {
  constructor(operator, size, selection) {
    this.name = operator.name;
    this.operator = operator;
    this.size = size;
    const { width, height, compact } = size;
    const bar = { x: 10, y: height - (compact ? 7 : 8), height: 3, rx: 1.5 };
    this.title = svg("title");
    this.pool = new Pool(operator.pool, size, compact ? 19 : 27);
    this.rates = svg("text", { x: 10, y: compact ? 41 : 54, class: "figures" });
    this.queue = svg("text", { x: 10, y: 69, class: "figures" });
    this.load = svg("rect", { ...bar, class: "load" });
    this.group = svg(
      "g",
      { class: "node", "data-operator": operator.name, onclick: () => selection.toggle(this.name) },
      this.title,
      svg("rect", { width, height, rx: 6, class: "box" }),
      svg("text", { x: 10, y: compact ? 14 : 19, class: "name" }, shortened(label(operator), width - 20)),
      this.pool.group,
      this.rates,
      ...(compact ? [] : [this.queue]),
      svg("rect", { ...bar, width: width - 20, class: "load-room" }),
      this.load,
    );
  }

  update({ series, settings }) {
    const now = series.latest(this.name);
    const byHand = this.name in settings.by_hand;
    this.pool.update(now.active, byHand ? (this.size.compact ? "*" : " by hand") : "");
    if (this.size.compact) {
      setText(this.rates, `${figures.compactRate(now.received)} · ${figures.compact(now.queued)} q`);
    } else {
      setText(
        this.rates,
        `in ${figures.compactRate(now.received)}  out ${figures.compactRate(now.processed)}`,
      );
      setText(this.queue, `${figures.compact(now.queued)} queued`);
    }
    const load = now.utilization ?? 0;
    setAttribute(this.load, "width", (Math.min(1, load) * (this.size.width - 20)).toFixed(0));
    setAttribute(this.load, "data-load", load >= OVERLOADED ? "over" : load >= BUSY ? "busy" : "calm");
    setText(
      this.title,
      `${this.name}: ${figures.count(now.active)} of ${this.operator.pool} replicas` +
        `${byHand ? ", set by hand" : ""}; in ${figures.rate(now.received)}, out ${figures.rate(now.processed)}; ` +
        `${figures.count(now.queued)} queued; utilisation ${figures.percent(now.utilization)}` +
        insideOf(this.operator, series),
    );
  }
}

/** A chain is called by all that is in it. */
export const label = ({ name, inside }) => (inside?.length ? inside.join(" → ") : name);

/** What the operators of a chain do, a line for each. */
export function insideOf({ name, inside }, series) {
  return (inside ?? [])
    .map((inner) => {
      const now = series.inside[name]?.[inner];
      const each = now?.execution_time == null ? "" : `, ${(1e6 * now.execution_time).toPrecision(3)} µs each`;
      const aside = now?.set_aside ? `, ${figures.count(now.set_aside)} set aside` : "";
      return `\n${inner}: out ${figures.rate(now?.processed ?? null)}${each}${aside}`;
    })
    .join("");
}

export class SourceNode {
  constructor(name, { edges }, { width, height }, narrow) {
    this.name = name;
    this.keys = edges.filter(({ origin }) => origin === name).map(({ target }) => `${name}>${target}`);
    const pill = { width: 0.75 * width, height: 42, rx: 21, class: "box" };
    pill.x = narrow ? (width - pill.width) / 2 : width - pill.width;
    pill.y = narrow ? height - pill.height : (height - pill.height) / 2;
    this.title = svg("title");
    const middle = { x: pill.x + pill.width / 2, "text-anchor": "middle" };
    this.rate = svg("text", { ...middle, y: pill.y + 34, class: "figures" });
    this.group = svg(
      "g",
      { class: "node source" },
      this.title,
      svg("rect", pill),
      svg("text", { ...middle, y: pill.y + 18, class: "name" }, shortened(name, pill.width - 24)),
      this.rate,
    );
  }

  /** An edge may carry less than everything; the fullest one is nearest to what the source gives. */
  update({ series }) {
    const rates = this.keys.map((key) => series.edges[key]).filter((rate) => rate !== undefined);
    const rate = figures.compactRate(rates.length ? Math.max(...rates) : null);
    const { held, lag } = series.backlog.sources[this.name] ?? { held: 0, lag: 0 };
    setText(this.rate, held >= 1 ? `${rate} · ${figures.duration(lag)} late` : rate);
    setText(this.title, `source ${this.name}: ${figures.count(held)} events held back`);
  }
}

/** The replicas of a pool: a square each, filled when active; of a large pool a bar. */
class Pool {
  constructor(pool, { width, pips }, y) {
    this.pool = pool;
    this.squares = [];
    this.text = svg("text", { x: width - 10, y: y + 9, class: "replicas", "text-anchor": "end" });
    this.group = svg("g", {}, this.text);
    if (pool <= pips) {
      const pitch = Math.min(13, (width - 62) / pool);
      this.squares = Array.from({ length: pool }, (_, index) =>
        svg("rect", { x: 10 + index * pitch, y, width: pitch - 3, height: 10, rx: 2, class: "pip" }),
      );
      this.group.append(...this.squares);
    } else {
      this.room = width - 72;
      this.bar = svg("rect", { x: 10, y, height: 10, rx: 2, class: "pip", "data-active": true });
      this.group.append(
        svg("rect", { x: 10, y, width: this.room, height: 10, rx: 2, class: "pip" }),
        this.bar,
      );
    }
  }

  update(active, mark) {
    this.squares.forEach((square, index) => square.toggleAttribute("data-active", index < active));
    if (this.bar) setAttribute(this.bar, "width", ((this.room * (active ?? 0)) / this.pool).toFixed(0));
    setText(this.text, `${figures.count(active)}/${this.pool}${mark}`);
  }
}

/** As much of a name as fits into so many pixels; its end often tells it from the others. */
function shortened(name, room) {
  let text = name;
  let letters = name.length - ENDING;
  while (letters > 1 && ruler.measureText(text).width > room) {
    letters -= 1;
    text = `${name.slice(0, letters)}…${name.slice(-ENDING)}`;
  }
  return text;
}

const ruler = document.createElement("canvas").getContext("2d");
ruler.font = "600 12.5px system-ui, sans-serif";
