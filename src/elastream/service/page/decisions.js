// What was decided and steered, and why, newest first.

import { byId, element } from "./dom.js";
import * as figures from "./figures.js";

const MOST = 200;

export class Decisions {
  #list = byId("decisions");
  #quiet = null;

  constructor(store) {
    store.on("decisions", () => {
      this.#list.replaceChildren();
      this.#quiet = null;
      for (const decision of store.decisions.toReversed()) this.#add(decision);
      if (!store.decisions.length)
        this.#list.append(element("li", { class: "empty" }, "Nothing decided yet."));
    });
    store.on("decision", (decision) => this.#add(decision));
  }

  #add(decision) {
    this.#list.querySelector(".empty")?.remove();
    if (isQuiet(decision)) return this.#addQuiet(decision);
    this.#quiet = null;
    this.#list.prepend(decision.kind === "steering" ? steering(decision) : cycle(decision));
    while (this.#list.children.length > MOST) this.#list.lastElementChild.remove();
  }

  /** Cycles that changed nothing share one line. */
  #addQuiet({ time }) {
    if (this.#quiet === null) {
      this.#quiet = { count: 0, since: time, entry: element("li", { class: "entry unchanged" }) };
      this.#list.prepend(this.#quiet.entry);
    }
    this.#quiet.count += 1;
    const { count, since, entry } = this.#quiet;
    entry.textContent =
      count === 1
        ? `${figures.clock(time)} no change`
        : `${figures.clock(since)} to ${figures.clock(time)} no change in ${count} cycles`;
  }
}

const isQuiet = ({ kind, outcome, note, changes }) =>
  kind === "cycle" && outcome === "unchanged" && !note && !changes.length;

function cycle({ time, outcome, note, model, forecast, changes }) {
  const expected = forecast === null ? "" : `${figures.rate(forecast)} expected${model ? ` (${model})` : ""}`;
  return element(
    "li",
    { class: "entry", "data-outcome": outcome },
    head(time, outcome, expected),
    ...changes.map(change),
    ...(note ? [element("p", { class: "note" }, note)] : []),
  );
}

function change({ operator, before, after, reasons }) {
  return element(
    "div",
    { class: "change" },
    element(
      "p",
      {},
      element("b", {}, operator),
      ` ${before} → ${after} `,
      element(
        "span",
        { class: after > before ? "up" : "down" },
        after > before ? `▲ ${after - before}` : `▼ ${before - after}`,
      ),
    ),
    ...reasons.map((reason) => element("p", { class: "reason" }, reason)),
  );
}

function steering({ time, at, who, what }) {
  return element(
    "li",
    { class: "entry", "data-outcome": "steering" },
    head(time, "steering", `${who}, ${figures.wallTime(at)}`),
    element("p", {}, what),
  );
}

function head(time, label, about) {
  return element(
    "p",
    { class: "head" },
    element("time", {}, figures.clock(time)),
    element("span", { class: "chip", "data-outcome": label }, label),
    element("span", { class: "quiet" }, about),
  );
}
