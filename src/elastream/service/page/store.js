// What the page knows. Views listen to "pipeline", "samples", "settings", "forecast", "health",
// "problems", "decisions"
// (all of them, after a load) and "decision" (one more).

import { Series } from "./series.js";

export class Store {
  pipeline = null;
  settings = null;
  forecast = null;
  health = null;
  problems = { operators: {}, failures: [] };
  decisions = [];
  series = new Series([]);
  #listeners = new Map();

  on(topic, listener) {
    this.#listeners.set(topic, [...(this.#listeners.get(topic) ?? []), listener]);
  }

  /** Replace everything by what the service knows. */
  load({ pipeline, settings, history, decisions, forecast }) {
    this.pipeline = pipeline;
    this.series = new Series(pipeline.operators.map(({ name }) => name));
    this.series.load(history);
    this.decisions = decisions;
    Object.assign(this, { settings, forecast });
    for (const topic of ["pipeline", "settings", "forecast", "decisions", "samples"]) this.#tell(topic);
  }

  /** Take in one event of the stream. */
  apply(kind, data) {
    if (kind === "sample") {
      this.series.append(data);
      this.#tell("samples");
    } else if (kind === "settings") {
      this.changeSettings(data);
    } else if (kind === "forecast") {
      this.forecast = data;
      this.#tell("forecast");
    } else if (kind === "health" || kind === "problems") {
      this[kind] = data;
      this.#tell(kind);
    } else if (kind === "decision" && !this.#knows(data)) {
      this.decisions = [data, ...this.decisions.slice(0, 199)];
      this.#tell("decision", data);
    }
  }

  /** The stream tells a change again after its answer, and may be behind a newer one. */
  changeSettings(settings) {
    if (settings.revision <= this.settings.revision) return;
    this.settings = settings;
    this.#tell("settings");
  }

  /** The limits in force: those set while it runs, or else the declared ones. */
  limits(operator) {
    return this.settings.limits[operator.name] ?? operator;
  }

  #knows(decision) {
    const identity = JSON.stringify(decision);
    return this.decisions.some((known) => known.time === decision.time && JSON.stringify(known) === identity);
  }

  #tell(topic, news) {
    for (const listener of this.#listeners.get(topic) ?? []) listener(news);
  }
}
