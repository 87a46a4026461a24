// The recorded input under another policy and predictor, beside what really happened.

import { replay } from "./api.js";
import { byId } from "./dom.js";
import { fillChoices, onSubmit, submit } from "./forms.js";
import { Side } from "./what_if_side.js";

export class WhatIf {
  #form = byId("what-if");
  #result = byId("what-if-result");
  #sides = [];

  constructor(store) {
    store.on("pipeline", () => fillChoices(this.#form, store.pipeline.choices));
    onSubmit(this.#form, () => this.#replay());
  }

  recolour() {
    for (const side of this.#sides) side.recolour();
  }

  async #replay() {
    if (this.#form.hasAttribute("aria-busy")) return;
    const choice = { policy: this.#form.policy.value, predictor: this.#form.predictor.value };
    const button = this.#form.querySelector("button");
    button.textContent = "Replaying…";
    const answer = await submit(this.#form, () => replay(choice), "Replayed; see below.");
    button.textContent = "Replay";
    if (answer) this.#show(answer);
  }

  /** Both sides, with axes of the same height. */
  #show({ recorded, replayed }) {
    const top = (column) => [...recorded[column], ...replayed[column]].reduce((a, b) => Math.max(a, b), 1);
    const tops = { replicas: top("replicas"), queued: top("queued") };
    this.#sides = [
      new Side("Recorded", recorded, { tops, slot: 0 }),
      new Side("Replayed", replayed, { tops, slot: 1, baseline: recorded }),
    ];
    this.#result.hidden = false;
    this.#result.replaceChildren(...this.#sides.map(({ article }) => article));
    for (const side of this.#sides) side.draw();
  }
}
