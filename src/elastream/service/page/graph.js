// The pipeline as a drawing, with edges as thick as their flow.

import { arranged } from "./arrangement.js";
import { byId, setAttribute, setText, svg } from "./dom.js";
import * as figures from "./figures.js";
import { calmly } from "./frames.js";
import { OperatorNode, SourceNode } from "./nodes.js";

const SMALLEST_SCALE = 0.7;
const THINNEST = 1.5;
const THICKEST = 12;

export class Graph {
  #box = byId("graph");
  #store;
  #selection;
  #nodes = [];
  #edges = [];
  #room = 0;

  constructor(store, selection) {
    this.#store = store;
    this.#selection = selection;
    store.on("pipeline", () => this.#draw());
    const redraw = calmly(() => store.pipeline && this.#room !== this.#box.clientWidth && this.#draw());
    new ResizeObserver(redraw).observe(this.#box);
  }

  /** Bring rates, replicas and queues up to date. */
  update() {
    const { series } = this.#store;
    for (const node of this.#nodes) node.update(this.#store);
    const most = Math.max(1e-9, ...this.#edges.map(({ key }) => series.edges[key] ?? 0));
    for (const { key, path, title } of this.#edges) {
      const share = (series.edges[key] ?? 0) / most;
      setAttribute(path, "stroke-width", (THINNEST + (THICKEST - THINNEST) * share).toFixed(1));
      setText(title, `${key.replace(">", " → ")}: ${figures.rate(series.edges[key])}`);
    }
  }

  #draw() {
    const { pipeline } = this.#store;
    this.#room = this.#box.clientWidth;
    const { size, narrow, width, height, corners, lines } = arranged(pipeline, this.#room);
    this.#edges = lines.map(({ key, line }) => {
      const title = svg("title");
      return { key, title, path: svg("path", { d: line, class: "edge" }, title) };
    });
    this.#nodes = [
      ...pipeline.sources.map((name) => new SourceNode(name, pipeline, size, narrow)),
      ...pipeline.operators.map((operator) => new OperatorNode(operator, size, this.#selection)),
    ];
    for (const { name, group } of this.#nodes) {
      group.setAttribute("transform", `translate(${corners.get(name).join(" ")})`);
    }
    // As wide as the panel, but neither blown up nor too small to read; then the panel scrolls.
    const scale = Math.max(SMALLEST_SCALE, Math.min(1, this.#room / (width + 4)));
    const drawing = svg("svg", {
      viewBox: `-2 -2 ${width + 4} ${height + 4}`,
      width: Math.floor((width + 4) * scale),
      height: Math.ceil((height + 4) * scale),
      role: "img",
      "aria-label": described(pipeline),
    });
    drawing.append(...this.#edges.map(({ path }) => path), ...this.#nodes.map(({ group }) => group));
    this.#box.replaceChildren(drawing);
    this.update();
  }
}

/** The drawing in words. */
function described({ sources, operators, edges }) {
  const after = (name) => edges.filter(({ origin }) => origin === name).map(({ target }) => target);
  return [...sources, ...operators.map(({ name }) => name)]
    .filter((name) => after(name).length)
    .map((name) => `${name} feeds ${after(name).join(", ")}`)
    .join("; ");
}
