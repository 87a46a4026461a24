// Steering the run as a whole: policy, predictor, interval, pause, advice only, drain and stop.

import { changeSettings, stopRun } from "./api.js";
import { byId, element } from "./dom.js";
import { choose, clearProblems, fillChoices, numberIn, onSubmit, submit } from "./forms.js";

const FIELDS = ["policy", "predictor", "td"];
const MODES = [
  ["stopping", "draining"],
  ["paused", "paused"],
  ["advice_only", "advice only"],
];

export class Control {
  #form = byId("settings");
  #switches = byId("switches");
  #store;

  constructor(store) {
    this.#store = store;
    store.on("pipeline", () => fillChoices(this.#form, store.pipeline.choices));
    store.on("settings", () => this.#show());
    this.#form.addEventListener("input", () => this.#offer());
    this.#form.addEventListener("reset", (event) => {
      event.preventDefault();
      clearProblems(this.#form);
      this.#fill(store.settings);
    });
    onSubmit(this.#form, () => this.#apply());
    for (const name of ["paused", "advice_only"]) {
      this.#switches[name].addEventListener("change", () => this.#flip(name));
    }
    this.#askBeforeStopping();
  }

  /** The values in force, except where someone is about to change them. */
  #show() {
    const { settings } = this.#store;
    const changes = this.#shown ? this.#changes(this.#shown) : {};
    this.#fill({ ...settings, ...changes });
    this.#shown = settings;
    // A switch that waits for its answer stays as it was clicked.
    if (!this.#switches.hasAttribute("aria-busy")) {
      for (const name of ["paused", "advice_only"]) this.#switches[name].checked = settings[name];
    }
    byId("stop").disabled = settings.stopping;
    byId("modes").replaceChildren(
      ...MODES.filter(([name]) => settings[name]).map(([name, label]) =>
        element("span", { class: "chip", "data-mode": name }, label),
      ),
    );
    this.#offer();
  }

  #shown = null;

  #fill(values) {
    for (const name of FIELDS) choose(this.#form[name], values[name]);
    this.#offer();
  }

  /** What the form says that is not in force. */
  #changes(settings) {
    const typed = {
      policy: this.#form.policy.value,
      predictor: this.#form.predictor.value,
      td: numberIn(this.#form.td),
    };
    return Object.fromEntries(Object.entries(typed).filter(([name, value]) => value !== settings[name]));
  }

  #offer() {
    this.#form.toggleAttribute("data-changed", Object.keys(this.#changes(this.#store.settings)).length > 0);
  }

  async #apply() {
    const changes = this.#changes(this.#store.settings);
    if (!Object.keys(changes).length) return;
    this.#take(await submit(this.#form, () => changeSettings(changes), "Applied."));
  }

  async #flip(name) {
    const on = this.#switches[name].checked;
    const settings = await submit(this.#switches, () => changeSettings({ [name]: on }), "");
    if (settings) this.#take(settings);
    this.#show();
  }

  #take(settings) {
    if (!settings) return;
    this.#fill(settings);
    this.#shown = settings;
    this.#store.changeSettings(settings);
  }

  #askBeforeStopping() {
    const dialog = byId("stop-dialog");
    const form = dialog.querySelector("form");
    byId("stop").addEventListener("click", () => {
      clearProblems(form);
      form.querySelector("output").textContent = "";
      dialog.showModal();
    });
    onSubmit(form, async () => {
      if (
        await submit(
          form,
          async () => {
            await stopRun();
            return true;
          },
          "",
        )
      )
        dialog.close();
    });
  }
}
