// What was decided and steered, and why, newest first.

import { byId, element } from "./dom.js";
import * as figures from "./figures.js";

const MOST = 200;
/** So many changes of a cycle are shown at once, the others on demand. */
const AT_ONCE = 6;

export class Decisions {
  #list = byId("decisions");
  #idle = null;

  constructor(store) {
    store.on("decisions", () => {
      this.#list.replaceChildren();
      this.#idle = null;
      for (const decision of store.decisions.toReversed()) this.#add(decision);
      if (!store.decisions.length)
        this.#list.append(element("li", { class: "empty" }, "Nothing decided yet."));
    });
    store.on("decision", (decision) => this.#add(decision));
  }

  #add(decision) {
    this.#list.querySelector(".empty")?.remove();
    if (decision.kind === "cycle" && !decision.changes.length) return this.#addIdle(decision);
    this.#idle = null;
    this.#prepend(decision.kind === "steering" ? steering(decision) : cycle(decision));
  }

  /** Cycles that changed nothing for the same reason share one line. */
  #addIdle({ time, outcome, note }) {
    const reason = `${outcome === "unchanged" ? "no change" : outcome}${note ? `: ${note}` : ""}`;
    if (this.#idle?.reason !== reason) {
      this.#idle = { reason, cycles: 0, since: time, entry: element("li", { class: "entry idle" }) };
      this.#idle.entry.dataset.outcome = outcome;
      this.#prepend(this.#idle.entry);
    }
    this.#idle.cycles += 1;
    const { cycles, since, entry } = this.#idle;
    const when = cycles === 1 ? "" : ` to ${figures.clock(time)}, ${cycles} cycles`;
    entry.textContent = `${figures.clock(since)}${when}: ${reason}`;
  }

  #prepend(entry) {
    this.#list.prepend(entry);
    while (this.#list.children.length > MOST) this.#list.lastElementChild.remove();
  }
}

function cycle({ time, outcome, note, model, forecast, changes }) {
  const expected = forecast === null ? "" : `${figures.rate(forecast)} expected${model ? ` (${model})` : ""}`;
  return element(
    "li",
    { class: "entry", "data-outcome": outcome },
    head(time, outcome, expected),
    ...changes.slice(0, AT_ONCE).map(change),
    ...(changes.length > AT_ONCE ? [others(changes.slice(AT_ONCE))] : []),
    ...(note ? [element("p", { class: "note" }, note)] : []),
  );
}

function others(changes) {
  return element("details", {}, element("summary", {}, `${changes.length} more`), ...changes.map(change));
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
