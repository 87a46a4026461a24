// What was measured, as columns: one entry per sample, oldest first, for the last hour.

export const HISTORY = 3600;
/** Old samples are dropped many at a time, which is cheaper than one by one. */
const SLACK = 120;

const TOTALS = [
  "time",
  "input",
  "forecast",
  "forecast_low",
  "forecast_high",
  "throughput",
  "latency_p50",
  "latency_p99",
  "executors",
  "executor_seconds",
];
const PER_OPERATOR = ["active", "queued", "utilization", "received", "processed"];

export class Series {
  constructor(names) {
    this.totals = columns(TOTALS);
    this.operators = new Map(names.map((name) => [name, columns(PER_OPERATOR)]));
    this.edges = {};
    /** What operators inside chains do now, by the chain. */
    this.inside = {};
    /** What waits now: `{ operators, sources }`. */
    this.backlog = { operators: {}, sources: {} };
  }

  get time() {
    return this.totals.time;
  }

  get length() {
    return this.time.length;
  }

  load(history) {
    for (const name of TOTALS) this.totals[name] = history[name];
    for (const name of this.operators.keys()) {
      if (history.operators[name]) this.operators.set(name, history.operators[name]);
    }
    this.edges = history.edges;
    this.backlog = history.backlog;
  }

  /** Add a sample, unless it is one that the history brought already. */
  append(sample) {
    if (sample.time <= (this.time.at(-1) ?? -Infinity)) return;
    for (const name of TOTALS) this.totals[name].push(sample[name]);
    for (const [operator, own] of this.operators) {
      const values = sample.operators[operator];
      for (const name of PER_OPERATOR) own[name].push(values?.[name] ?? null);
    }
    this.edges = sample.edges;
    this.inside = sample.inside ?? {};
    this.backlog = sample.backlog;
    this.#forget(sample.time - HISTORY);
  }

  /** The newest values of an operator. */
  latest(operator) {
    const own = this.operators.get(operator);
    return Object.fromEntries(PER_OPERATOR.map((name) => [name, own[name].at(-1) ?? null]));
  }

  #forget(before) {
    if (this.time[0] >= before - SLACK) return;
    const old = this.time.findIndex((time) => time >= before);
    for (const of of [this.totals, ...this.operators.values()]) {
      for (const column of Object.values(of)) column.splice(0, old);
    }
  }
}

const columns = (names) => Object.fromEntries(names.map((name) => [name, []]));
