// Which operators the charts show, and in which colour. A colour stays with an operator until it goes.

import { LINES } from "./palette.js";

export class Selection {
  #slots = new Map();
  #listeners = [];

  on(listener) {
    this.#listeners.push(listener);
  }

  get full() {
    return this.#slots.size === LINES;
  }

  /** The operators shown, in the order of their colours. */
  get names() {
    return [...this.#slots].sort(([, a], [, b]) => a - b).map(([name]) => name);
  }

  /** The number of an operator's colour; undefined while it is not shown. */
  slot(name) {
    return this.#slots.get(name);
  }

  replace(names) {
    this.#slots = new Map(names.slice(0, LINES).map((name, slot) => [name, slot]));
    this.#tell();
  }

  toggle(name) {
    if (!this.#slots.delete(name)) {
      if (this.full) return;
      const taken = new Set(this.#slots.values());
      this.#slots.set(
        name,
        Array.from({ length: LINES }, (_, slot) => slot).find((slot) => !taken.has(slot)),
      );
    }
    this.#tell();
  }

  #tell() {
    for (const listener of this.#listeners) listener();
  }
}

/** The operators worth a look at first: all of a few; of many, those with most to do. */
export function busiest(series) {
  const mean = (values) => values.reduce((sum, value) => sum + (value ?? 0), 0) / (values.length || 1);
  const names = [...series.operators.keys()];
  if (names.length <= LINES) return names;
  const load = new Map(
    names.map((name) => {
      const own = series.operators.get(name);
      return [name, mean(own.utilization) * mean(own.active)];
    }),
  );
  const chosen = new Set([...names].sort((a, b) => load.get(b) - load.get(a)).slice(0, LINES));
  return names.filter((name) => chosen.has(name));
}
