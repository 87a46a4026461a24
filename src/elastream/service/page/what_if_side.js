// One side of a what-if: its figures and two small charts.

import { Chart } from "./chart.js";
import { element } from "./dom.js";
import * as figures from "./figures.js";

const MEASURES = [
  ["Replica-seconds", "replica_seconds", figures.count],
  ["Mean latency", "latency_mean", figures.duration],
  ["p99 latency", "latency_p99", figures.duration],
  ["Largest backlog", "backlog", (value) => `${figures.count(value)} events`],
];
const CHARTS = [
  { title: "Replicas", unit: "active", column: "replicas", steps: true },
  { title: "Queue", unit: "events waiting", column: "queued", steps: false },
];
const LOOK = { write: figures.count, axis: figures.compact, height: 120, sync: "what-if" };

export class Side {
  #side;

  /** `tops` are the heights of the axes; `baseline` is the side that this one is compared with. */
  constructor(title, side, { tops, slot, baseline }) {
    this.#side = side;
    this.charts = CHARTS.map((kind) => new Chart({ ...kind, ...LOOK, top: tops[kind.column] }));
    for (const chart of this.charts) chart.setLines([{ label: title.toLowerCase(), slot }]);
    const facts = MEASURES.map(([label, name, write]) => {
      const compared = baseline ? difference(side[name], baseline[name]) : "";
      return element(
        "div",
        {},
        element("dt", {}, label),
        element("dd", {}, write(side[name]), " ", compared),
      );
    });
    const choice = element("p", { class: "quiet" }, `${side.policy} with ${side.predictor}`);
    this.article = element("article", {}, element("h3", {}, title), choice);
    this.article.append(
      element("dl", { class: "facts" }, ...facts),
      ...this.charts.map(({ figure }) => figure),
    );
  }

  /** Draw the charts, once the article has its place on the page. */
  draw() {
    const { time } = this.#side;
    const span = [time[0] ?? 0, time.at(-1) ?? 1];
    this.charts.forEach((chart, index) => chart.setData([time, this.#side[CHARTS[index].column]], span));
  }

  recolour() {
    for (const chart of this.charts) chart.recolour();
  }
}

/** How much less or more than recorded; less is better in every measure here. */
function difference(value, baseline) {
  if (!baseline || value === null) return "";
  const share = value / baseline - 1;
  if (Math.abs(share) < 0.005) return element("span", { class: "quiet" }, "the same");
  const text = `${share < 0 ? "−" : "+"}${figures.percent(Math.abs(share))}`;
  return element("span", { class: share < 0 ? "better" : "worse" }, text);
}
