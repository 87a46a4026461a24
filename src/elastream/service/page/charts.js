// The charts of the run, which share one time span and one cursor.

import { byId, element, setText } from "./dom.js";
import { Chart } from "./chart.js";
import * as figures from "./figures.js";

const SPANS = [
  ["5 min", 300],
  ["15 min", 900],
  ["1 h", 3600],
];
const SHORTEST = 10;

const TOTALS = [
  {
    title: "Input and forecast",
    unit: "events/s",
    write: figures.rate,
    axis: figures.compact,
    lines: [
      ["input", "input", 0],
      ["forecast", "forecast", 1, true],
      ["at least", "forecast_low", 1, false, true],
      ["at most", "forecast_high", 1, false, true],
    ],
  },
  {
    title: "Throughput",
    unit: "events/s",
    write: figures.rate,
    axis: figures.compact,
    lines: [["processed", "throughput", 2]],
  },
  {
    title: "Latency",
    unit: "end to end",
    write: figures.duration,
    axis: figures.axisDuration,
    lines: [
      ["p50", "latency_p50", 0],
      ["p99", "latency_p99", 1],
    ],
  },
];
const PER_OPERATOR = [
  {
    title: "Replicas",
    unit: "active per operator",
    column: "active",
    write: figures.count,
    top: 2,
    steps: true,
  },
  {
    title: "Queue",
    unit: "events waiting, per operator",
    column: "queued",
    write: figures.count,
    axis: figures.compact,
  },
  {
    title: "Utilisation",
    unit: "of the active replicas",
    column: "utilization",
    write: figures.percent,
    top: 1,
  },
];
const ORDER = ["Input and forecast", "Throughput", "Replicas", "Queue", "Latency", "Utilisation"];

export class Charts {
  #store;
  #selection;
  #span = SPANS.at(-1)[1];
  #zoom = null;

  constructor(store, selection) {
    this.#store = store;
    this.#selection = selection;
    const common = { sync: "run", pointed: showTime, zoomed: (span) => this.#follow(span) };
    this.totals = TOTALS.map((kind) => ({ ...kind, chart: new Chart({ ...kind, ...common }) }));
    this.perOperator = PER_OPERATOR.map((kind) => ({ ...kind, chart: new Chart({ ...kind, ...common }) }));
    for (const { chart, lines } of this.totals) {
      chart.setLines(lines.map(([label, , slot, dash, edge]) => ({ label, slot, dash, edge })));
    }
    const all = [...this.totals, ...this.perOperator];
    byId("charts").append(...ORDER.map((title) => all.find((kind) => kind.title === title).chart.figure));
    byId("follow").addEventListener("click", () => this.#follow(null));
    this.#offerSpans();
    selection.on(() => this.#choose());
  }

  update() {
    const { series } = this.#store;
    const span = this.#shown(series.time);
    for (const { chart, lines } of this.totals) {
      chart.setData([series.time, ...lines.map(([, column]) => series.totals[column])], span);
    }
    for (const { chart, column } of this.perOperator) {
      const columns = this.#selection.names.map((name) => series.operators.get(name)[column]);
      chart.setData([series.time, ...columns], span);
    }
  }

  recolour() {
    for (const { chart } of [...this.totals, ...this.perOperator]) chart.recolour();
  }

  #choose() {
    const lines = this.#selection.names.map((label) => ({ label, slot: this.#selection.slot(label) }));
    for (const { chart } of this.perOperator) chart.setLines(lines);
    this.update();
  }

  #shown(time) {
    if (this.#zoom) return this.#zoom;
    const end = time.at(-1) ?? 0;
    return [Math.min(Math.max(end - this.#span, time[0] ?? 0), end - SHORTEST), end];
  }

  /** Show a span that stays, or, given none, go on with the newest samples. */
  #follow(zoom) {
    this.#zoom = zoom && atLeast(SHORTEST, zoom);
    byId("zoom").hidden = zoom === null;
    byId("zoom-span").textContent = zoom ? this.#zoom.map(figures.clock).join(" to ") : "";
    this.update();
  }

  #offerSpans() {
    byId("span").append(
      ...SPANS.map(([label, seconds]) =>
        element(
          "label",
          {},
          element("input", {
            type: "radio",
            name: "span",
            value: seconds,
            checked: seconds === this.#span,
            onchange: () => {
              this.#span = seconds;
              this.#follow(null);
            },
          }),
          element("span", {}, label),
        ),
      ),
    );
  }
}

const showTime = (time) => setText(byId("cursor-time"), time === null ? "" : `at ${figures.clock(time)}`);

/** The span, made longer around its middle if it is too short to show. */
function atLeast(seconds, [start, end]) {
  const more = Math.max(0, seconds - (end - start)) / 2;
  return [start - more, end + more];
}
