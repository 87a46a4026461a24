// The newest figures of the whole run.

import { byId, element, setText } from "./dom.js";
import * as figures from "./figures.js";

const TILES = ["Input", "Forecast", "Throughput", "Latency p99", "Replicas", "Queue"];

export class Tiles {
  #store;
  #values = {};

  constructor(store) {
    this.#store = store;
    byId("tiles").append(
      ...TILES.map((label) => {
        const value = element("dd", {}, figures.UNKNOWN);
        const note = element("dd", { class: "quiet" });
        this.#values[label] = { value, note };
        return element("div", {}, element("dt", {}, label), value, note);
      }),
    );
  }

  update() {
    const { series, pipeline } = this.#store;
    const newest = (name) => series.totals[name].at(-1) ?? null;
    const summed = (name) =>
      pipeline.operators.reduce((sum, of) => sum + (series.latest(of.name)[name] ?? 0), 0);
    const pool = pipeline.operators.reduce((sum, of) => sum + of.pool, 0);
    const started = series.length > 0;
    this.#show("Input", figures.rate(newest("input")), "events");
    this.#show("Forecast", figures.rate(newest("forecast")), "expected now");
    this.#show("Throughput", figures.rate(newest("throughput")), "events");
    this.#show(
      "Latency p99",
      figures.duration(newest("latency_p99")),
      `p50 ${figures.duration(newest("latency_p50"))}`,
    );
    const executors = newest("executors");
    const paid = executors === null ? "" : `, ${figures.count(newest("executor_seconds"))} executor-seconds`;
    this.#show(
      "Replicas",
      started ? `${summed("active")} / ${pool}` : figures.UNKNOWN,
      executors === null ? "active / pool" : `on ${executors} executor${executors === 1 ? "" : "s"}${paid}`,
    );
    const queues = [...Object.values(series.backlog.operators), ...Object.values(series.backlog.sources)];
    const oldest = Math.max(0, ...queues.map((queue) => queue.oldest ?? queue.lag));
    this.#show(
      "Queue",
      figures.count(started ? summed("queued") : null),
      oldest ? `waiting, oldest ${figures.duration(oldest)}` : "events waiting",
    );
  }

  #show(label, value, note) {
    setText(this.#values[label].value, value);
    setText(this.#values[label].note, note);
  }
}
