// The recorded input under another policy and predictor, beside what really happened.

import { replay } from "./api.js";
import { Chart } from "./chart.js";
import { byId, element } from "./dom.js";
import * as figures from "./figures.js";
import { fillChoices, onSubmit, submit } from "./forms.js";

const MEASURES = [
  ["Replica-seconds", "replica_seconds", figures.count],
  ["Mean latency", "latency_mean", figures.duration],
  ["p99 latency", "latency_p99", figures.duration],
  ["Largest backlog", "backlog", (value) => `${figures.count(value)} events`],
];
const HEIGHT = 120;

export class WhatIf {
  #form = byId("what-if");
  #result = byId("what-if-result");
  #charts = [];

  constructor(store) {
    store.on("pipeline", () => {
      fillChoices(this.#form, store.pipeline.choices);
      this.#result.hidden = true;
    });
    onSubmit(this.#form, () => this.#replay());
  }

  recolour() {
    for (const chart of this.#charts) chart.recolour();
  }

  async #replay() {
    const choice = { policy: this.#form.policy.value, predictor: this.#form.predictor.value };
    const button = this.#form.querySelector("button");
    button.disabled = true;
    button.textContent = "Replaying…";
    const sides = await submit(this.#form, () => replay(choice), "Replayed; see below.");
    button.disabled = false;
    button.textContent = "Replay";
    if (sides) this.#show(sides);
  }

  #show({ recorded, replayed }) {
    const top = (column) => Math.max(1, ...recorded[column], ...replayed[column]);
    const tops = { replicas: top("replicas"), queued: top("queued") };
    this.#charts = [];
    this.#result.hidden = false;
    this.#result.replaceChildren(
      this.#side("Recorded", recorded, null, tops, 0),
      this.#side("Replayed", replayed, recorded, tops, 1),
    );
    for (const draw of this.#pending.splice(0)) draw();
  }

  #pending = [];

  #side(title, side, baseline, tops, slot) {
    const chart = (name, unit, column, steps) => {
      const made = new Chart({
        title: name,
        unit,
        write: figures.count,
        axis: figures.compact,
        top: tops[column],
        steps,
        height: HEIGHT,
        sync: "what-if",
      });
      this.#charts.push(made);
      made.setLines([{ label: title.toLowerCase(), slot }]);
      this.#pending.push(() =>
        made.setData([side.time, side[column]], [side.time[0] ?? 0, side.time.at(-1) ?? 1]),
      );
      return made.figure;
    };
    return element(
      "article",
      {},
      element(
        "h3",
        {},
        title,
        " ",
        element("span", { class: "quiet" }, `${side.policy} with ${side.predictor}`),
      ),
      element(
        "dl",
        { class: "facts" },
        ...MEASURES.map(([label, name, write]) =>
          element(
            "div",
            {},
            element("dt", {}, label),
            element(
              "dd",
              {},
              write(side[name]),
              " ",
              ...(baseline ? [difference(side[name], baseline[name])] : []),
            ),
          ),
        ),
      ),
      chart("Replicas", "active", "replicas", true),
      chart("Queue", "events waiting", "queued", false),
    );
  }
}

/** How much less or more than recorded; less is better in every measure here. */
function difference(value, baseline) {
  if (!baseline || value === null) return "";
  const share = value / baseline - 1;
  if (Math.abs(share) < 0.005) return element("span", { class: "quiet" }, "the same");
  return element(
    "span",
    { class: share < 0 ? "better" : "worse" },
    `${share < 0 ? "−" : "+"}${figures.percent(Math.abs(share))}`,
  );
}
