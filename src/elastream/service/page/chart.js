// One chart: uPlot with the page's colours, and a legend that gives the values in words.

import { element, setText } from "./dom.js";
import { UNKNOWN } from "./figures.js";
import { inSight } from "./frames.js";
import { plotOptions } from "./plot_options.js";

const HEIGHT = 168;

export class Chart {
  #plot = null;
  #data = [[]];
  #span = [0, 1];
  #lines = [];
  #stale = false;
  #isSeen;
  #look;

  /**
   * A look has a `title` and a `unit`; `write` and `axis` make text of a value; `top` is the least
   * the vertical axis reaches up to; `steps` draws levels instead of slopes; `sync` names the charts
   * whose cursors move together; `pointed` hears of the time under the cursor, null
   * without one; `zoomed` of a time span that was dragged over.
   */
  constructor(look) {
    this.#look = { height: HEIGHT, top: 0, axis: look.write, ...look };
    const { title, unit, height } = this.#look;
    this.legend = element("ul", { class: "legend" });
    this.canvas = element("div", { class: "canvas" });
    this.figure = element(
      "figure",
      {
        class: "chart",
        tabindex: 0,
        role: "group",
        "aria-label": `${title}, ${unit}`,
        onkeydown: (event) => this.#key(event),
      },
      element("figcaption", {}, element("h3", {}, title), element("span", { class: "quiet" }, unit)),
      this.legend,
      this.canvas,
    );
    this.#isSeen = inSight(this.figure, () => this.#stale && this.#draw());
    new ResizeObserver(([{ contentRect }]) => {
      if (contentRect.width) this.#plot?.setSize({ width: Math.floor(contentRect.width), height });
    }).observe(this.canvas);
  }

  /** The lines to draw: `{ label, slot, dash, edge }`, one per column after the time; two edges make a band. */
  setLines(lines) {
    this.#lines = lines;
    this.values = lines.map(() => element("b", {}, UNKNOWN));
    this.legend.replaceChildren(
      ...lines.map(({ label, slot, dash, edge }, index) =>
        element(
          "li",
          {},
          element("i", { class: `swatch line-${slot + 1}${dash ? " dashed" : ""}${edge ? " edge" : ""}` }),
          `${label} `,
          this.values[index],
        ),
      ),
    );
    this.#plot?.destroy();
    this.#plot = null;
    this.#data = [[], ...lines.map(() => [])];
  }

  setData(data, span) {
    this.#data = data;
    this.#span = span;
    if (this.#isSeen()) this.#draw();
    else this.#stale = true;
    this.#write();
  }

  /** Draw with the colours of the theme. */
  recolour() {
    this.#plot?.redraw(false);
  }

  #draw() {
    this.#stale = false;
    this.#plot ??= new uPlot(this.#options(), undefined, this.canvas);
    this.#plot.batch(() => {
      this.#plot.setData(this.#data, false);
      this.#plot.setScale("x", { min: this.#span[0], max: this.#span[1] });
    });
  }

  #options() {
    const width = Math.floor(this.canvas.clientWidth) || 300;
    return plotOptions({ ...this.#look, lines: this.#lines, width, cursorMoved: () => this.#write() });
  }

  /** The values under the cursor, or else the newest ones of the span. */
  #write() {
    const [times, ...columns] = this.#data;
    const pointed = this.#plot?.cursor.idx ?? null;
    const index = pointed ?? times.findLastIndex((time) => time <= this.#span[1]);
    if (this.#plot) this.#look.pointed?.(pointed === null ? null : times[pointed]);
    columns.forEach((column, number) => setText(this.values[number], this.#look.write(column[index])));
  }

  /** Arrows move the cursor of all charts, from the newest values on; Escape goes back there. */
  #key(event) {
    const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!this.#plot || (!direction && event.key !== "Escape")) return;
    event.preventDefault();
    const { cursor, bbox } = this.#plot;
    const width = bbox.width / devicePixelRatio;
    const from = typeof cursor.idx === "number" ? cursor.left : width;
    const step = Math.max(1, width / (event.shiftKey ? 10 : 100));
    const left = direction ? Math.min(width, Math.max(0, from + direction * step)) : -10;
    this.#plot.setCursor({ left, top: direction ? 10 : -10 }, true, true);
  }
}
