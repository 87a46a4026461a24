// One chart: uPlot with the page's colours, and a legend that gives the values in words.

import { element, setText } from "./dom.js";
import { UNKNOWN, clock } from "./figures.js";
import { inSight } from "./frames.js";
import { grid, line, text } from "./palette.js";

const HEIGHT = 168;
const AXIS_WIDTH = 56;
const FONT = "11px system-ui, sans-serif";
const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];
const WHOLE_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

export class Chart {
  #plot = null;
  #data = [[]];
  #span = [0, 1];
  #lines = [];
  #stale = false;

  /**
   * `write` and `axis` make text of a value; `top` is the least the vertical axis reaches up to;
   * `steps` draws levels instead of slopes; `sync` names the charts whose cursors move together;
   * `zoomed` hears of a time span that was dragged.
   */
  constructor({ title, unit, write, axis = write, top = 0, steps = false, height = HEIGHT, sync, zoomed }) {
    Object.assign(this, { title, write, axis, top, steps, height, sync, zoomed });
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
      if (contentRect.width)
        this.#plot?.setSize({ width: Math.floor(contentRect.width), height: this.height });
    }).observe(this.canvas);
  }

  #isSeen;

  /** The lines to draw: `{ label, slot, dash }`, one per column after the time. */
  setLines(lines) {
    this.#lines = lines;
    this.values = lines.map(() => element("b", {}, UNKNOWN));
    this.legend.replaceChildren(
      ...lines.map(({ label, slot, dash }, index) =>
        element(
          "li",
          {},
          element("i", { class: `swatch line-${slot + 1}${dash ? " dashed" : ""}` }),
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
    const axis = { stroke: text, font: FONT, grid: { stroke: grid, width: 1 }, ticks: { show: false } };
    return {
      width: Math.floor(this.canvas.clientWidth) || 300,
      height: this.height,
      legend: { show: false },
      padding: [8, 20, 0, 0],
      cursor: {
        sync: this.sync ? { key: this.sync, scales: ["x", null] } : undefined,
        drag: { x: Boolean(this.zoomed), y: false, setScale: false },
        y: false,
        points: { size: 6 },
      },
      scales: {
        x: { time: false },
        y: { range: (_, low, high) => [0, 1.05 * Math.max(this.top, high ?? 0) || 1] },
      },
      axes: [
        { ...axis, incrs: TIME_STEPS, size: 26, space: 70, values: (_, times) => times.map(clock) },
        {
          ...axis,
          size: AXIS_WIDTH,
          space: 30,
          incrs: this.steps ? WHOLE_STEPS : undefined,
          values: (_, values) => values.map(this.axis),
        },
      ],
      series: [
        {},
        ...this.#lines.map(({ slot, dash }) => ({
          stroke: () => line(slot),
          width: 1.5,
          dash: dash ? [6, 4] : undefined,
          points: { show: false },
          paths: this.steps ? uPlot.paths.stepped({ align: -1 }) : undefined,
        })),
      ],
      hooks: {
        setCursor: [() => this.#write()],
        setSelect: [
          ({ select, posToVal }) => {
            if (select.width > 4)
              this.zoomed?.([posToVal(select.left, "x"), posToVal(select.left + select.width, "x")]);
            this.#plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          },
        ],
      },
    };
  }

  /** The values under the cursor, or else the newest ones of the span. */
  #write() {
    const [times, ...columns] = this.#data;
    const index = this.#plot?.cursor.idx ?? times.findLastIndex((time) => time <= this.#span[1]);
    columns.forEach((column, number) => setText(this.values[number], this.write(column[index])));
  }

  #key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!this.#plot || (!step && event.key !== "Escape")) return;
    event.preventDefault();
    if (!step) return this.#plot.setCursor({ left: -10, top: -10 }, true, true);
    const { cursor, bbox, posToIdx } = this.#plot;
    const width = bbox.width / devicePixelRatio;
    const left = (cursor.idx ?? null) === null ? width : cursor.left;
    const pixels = Math.max(1, Math.round(width / (event.shiftKey ? 10 : 100)));
    const next = Math.min(width, Math.max(0, left + step * pixels));
    this.#plot.setCursor({ left: next, top: 10 }, true, true);
    return posToIdx(next);
  }
}
