// Every operator in a table: what it does now, whether the charts show it, and a way to adjust it.

import { byId, element, setText } from "./dom.js";
import * as figures from "./figures.js";
import { insideOf, label } from "./nodes.js";
import { LINES } from "./palette.js";

const HEADINGS = [
  ["Chart", "pick"],
  ["Operator", "name"],
  ["Replicas", "number"],
  ["Limits", "number limits"],
  ["In", "number wide"],
  ["Out", "number wide"],
  ["Queue", "number"],
  ["Oldest", "number wide"],
  ["Set aside", "number wide"],
  ["Utilisation", "number wide"],
  ["", "adjust"],
];

/** Replicas that are not as they should be, in the words of the service. */
const ABNORMAL = ["draining", "pending", "dead", "stalled"];

export class Operators {
  #store;
  #selection;
  #adjust;
  #rows = [];

  constructor(store, selection, adjust) {
    this.#store = store;
    this.#selection = selection;
    this.#adjust = adjust;
    store.on("pipeline", () => this.#build());
    store.on("settings", () => this.update());
    selection.on(() => this.#mark());
    byId("operators-find").addEventListener("input", () => this.#find());
  }

  update() {
    const { series, settings, problems } = this.#store;
    for (const { operator, cells, heading } of this.#rows) {
      heading.title = insideOf(operator, series).trim();
      const queue = series.backlog.operators[operator.name];
      const now = series.latest(operator.name);
      const limits = this.#store.limits(operator);
      const byHand = settings.by_hand[operator.name] !== undefined;
      const steered = operator.name in settings.limits;
      const abnormal = ABNORMAL.filter((state) => queue?.[state]).map((state) => `, ${queue[state]} ${state}`);
      setText(
        cells.active,
        `${figures.count(now.active)}/${operator.pool}${byHand ? " by hand" : ""}${abnormal.join("")}`,
      );
      cells.active.classList.toggle("worse", Boolean(queue?.dead || queue?.stalled));
      setText(cells.limits, `${limits.minimum}–${limits.maximum}${steered ? " set" : ""}`);
      setText(cells.received, figures.rate(now.received));
      setText(cells.processed, figures.rate(now.processed));
      setText(cells.queued, figures.count(now.queued));
      setText(cells.oldest, figures.duration(queue?.oldest || null));
      const aside = problems.operators[operator.name]?.set_aside ?? 0;
      setText(cells.aside, figures.count(aside));
      cells.aside.classList.toggle("worse", aside > 0);
      setText(cells.utilization, figures.percent(now.utilization));
    }
  }

  #build() {
    this.#rows = this.#store.pipeline.operators.map((operator) => this.#row(operator));
    byId("operators").replaceChildren(
      element(
        "table",
        {},
        element(
          "thead",
          {},
          element(
            "tr",
            {},
            ...HEADINGS.map(([heading, kind]) => element("th", { scope: "col", class: kind }, heading)),
          ),
        ),
        element("tbody", {}, ...this.#rows.map(({ row }) => row)),
      ),
    );
    this.#mark();
    this.#find();
  }

  #row(operator) {
    const { name } = operator;
    const swatch = element("i", { class: "swatch" });
    const box = element("input", {
      type: "checkbox",
      "aria-label": `Show ${name} in the charts`,
      onchange: () => this.#selection.toggle(name),
    });
    const cell = (kind) => element("td", { class: `number ${kind}` });
    const cells = {
      active: cell(""),
      limits: cell("limits"),
      received: cell("wide"),
      processed: cell("wide"),
      queued: cell(""),
      oldest: cell("wide"),
      aside: cell("wide"),
      utilization: cell("wide"),
    };
    const heading = element("th", { scope: "row", class: "name" }, label(operator));
    const row = element(
      "tr",
      {},
      element("td", { class: "pick" }, element("label", {}, box, swatch)),
      heading,
      ...Object.values(cells),
      element(
        "td",
        { class: "adjust" },
        element(
          "button",
          {
            type: "button",
            class: "small",
            "aria-label": `Adjust ${name}`,
            onclick: () => this.#adjust(operator),
          },
          "Adjust",
        ),
      ),
    );
    return { operator, row, box, swatch, cells, heading };
  }

  #mark() {
    const { full } = this.#selection;
    for (const { operator, box, swatch } of this.#rows) {
      const slot = this.#selection.slot(operator.name);
      box.checked = slot !== undefined;
      box.disabled = full && !box.checked;
      swatch.className = slot === undefined ? "swatch none" : `swatch line-${slot + 1}`;
    }
    const many = this.#rows.length > LINES;
    setText(
      byId("operators-note"),
      many ? `${this.#selection.names.length} of ${this.#rows.length} in the charts, at most ${LINES}` : "",
    );
  }

  #find() {
    const wanted = byId("operators-find").value.trim().toLowerCase();
    for (const { operator, row } of this.#rows) row.hidden = !operator.name.toLowerCase().includes(wanted);
  }
}
