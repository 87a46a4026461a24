// Steering one operator: its limits, and its replicas by hand.

import { releaseLimits, releaseReplicas, setLimits, setReplicas } from "./api.js";
import { byId } from "./dom.js";
import { clearProblems, numberIn, onSubmit, submit } from "./forms.js";

export class OperatorDialog {
  #store;
  #dialog = byId("operator-dialog");
  #limits = byId("limits");
  #byHand = byId("by-hand");
  #operator = null;

  constructor(store) {
    this.#store = store;
    onSubmit(this.#limits, () => {
      const limits = { minimum: numberIn(this.#limits.minimum), maximum: numberIn(this.#limits.maximum) };
      this.#send(this.#limits, (name) => setLimits(name, limits), "Limits set.");
    });
    onSubmit(this.#byHand, () => {
      const replicas = numberIn(this.#byHand.replicas);
      this.#send(this.#byHand, (name) => setReplicas(name, replicas), "Set by hand, until released.");
    });
    this.#onRelease(this.#limits, releaseLimits);
    this.#onRelease(this.#byHand, releaseReplicas);
    store.on("settings", () => this.#operator && this.#offer());
  }

  open(operator) {
    this.#operator = operator;
    byId("operator-title").textContent = operator.name;
    byId("operator-about").textContent =
      `A pool of ${operator.pool} replicas, declared to scale between ` +
      `${operator.minimum} and ${operator.maximum}.`;
    for (const form of [this.#limits, this.#byHand]) {
      clearProblems(form);
      form.querySelector("output").textContent = "";
    }
    this.#fill();
    this.#offer();
    this.#dialog.showModal();
  }

  #onRelease(form, release) {
    form.querySelector("[data-release]").addEventListener("click", async () => {
      if (!(await this.#send(form, release, "Released."))) return;
      this.#fill();
      // The button can no longer hold the focus.
      form.querySelector("input").focus();
    });
  }

  async #send(form, request, done) {
    const settings = await submit(form, () => request(this.#operator.name), done);
    if (settings) this.#store.changeSettings(settings);
    return settings;
  }

  #fill() {
    const { minimum, maximum } = this.#store.limits(this.#operator);
    const { name } = this.#operator;
    this.#limits.minimum.value = minimum;
    this.#limits.maximum.value = maximum;
    this.#byHand.replicas.value =
      this.#store.settings.by_hand[name] ?? this.#store.series.latest(name).active ?? "";
  }

  /** Only what is set can be released. */
  #offer() {
    const { limits, by_hand: byHand } = this.#store.settings;
    const { name } = this.#operator;
    this.#limits.querySelector("[data-release]").disabled = !(name in limits);
    this.#byHand.querySelector("[data-release]").disabled = !(name in byHand);
  }
}
