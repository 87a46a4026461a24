// The pipeline as a drawing: where everything goes, and the edges as thick as their flow.

import { byId, setAttribute, setText, svg } from "./dom.js";
import * as figures from "./figures.js";
import { layered } from "./layout.js";
import { COMPACT, FULL, OperatorNode, SourceNode } from "./nodes.js";

const MANY = 16;
const NARROW = 620;
const NARROW_GAP = 28;
const SMALLEST_SCALE = 0.7;
const THINNEST = 1.5;
const THICKEST = 12;

export class Graph {
  #box = byId("graph");
  #store;
  #selection;
  #nodes = [];
  #edges = [];
  #narrow = null;

  constructor(store, selection) {
    this.#store = store;
    this.#selection = selection;
    store.on("pipeline", () => this.#draw());
    new ResizeObserver(() => {
      if (store.pipeline && this.#isNarrow() !== this.#narrow) this.#draw();
      this.#fit();
    }).observe(this.#box);
  }

  /** Bring rates, replicas and queues up to date. */
  update() {
    const { series } = this.#store;
    for (const node of this.#nodes) node.update(this.#store);
    const most = Math.max(1e-9, ...this.#edges.map(({ key }) => series.edges[key] ?? 0));
    for (const { key, path, title } of this.#edges) {
      const rate = series.edges[key] ?? 0;
      setAttribute(path, "stroke-width", (THINNEST + (THICKEST - THINNEST) * (rate / most)).toFixed(1));
      setText(title, `${key.replace(">", " → ")}: ${figures.rate(series.edges[key])}`);
    }
  }

  #isNarrow() {
    return this.#box.clientWidth < NARROW;
  }

  #draw() {
    const { pipeline } = this.#store;
    this.#narrow = this.#isNarrow();
    const size = pipeline.operators.length > MANY ? COMPACT : FULL;
    const axis = this.#narrow ? DOWNWARDS : RIGHTWARDS;
    const [along, across] = axis.extents(size);
    const pitch = along + (this.#narrow ? NARROW_GAP : size.layerGap);
    const names = [...pipeline.sources, ...pipeline.operators.map(({ name }) => name)];
    const layout = layered(names, pipeline.edges, () => across, size.gap);
    const at = ({ layer, across: place }) => axis.point(layer * pitch + along / 2, place);

    this.#edges = layout.routes.map(({ origin, target, path }) => {
      const title = svg("title");
      const line = svg("path", { d: curve(path.map(at), axis, along), class: "edge" }, title);
      return { key: `${origin}>${target}`, path: line, title };
    });
    const places = new Map(layout.nodes.map((node) => [node.name, at(node)]));
    this.#nodes = [
      ...pipeline.sources.map((name) => new SourceNode(name, pipeline, size, this.#narrow)),
      ...pipeline.operators.map((operator) => new OperatorNode(operator, size, this.#selection)),
    ];
    for (const node of this.#nodes) {
      const [x, y] = places.get(node.name);
      node.group.setAttribute("transform", `translate(${x - size.width / 2} ${y - size.height / 2})`);
    }
    const [width, height] = axis.point((layout.layers - 1) * pitch + along, layout.extent);
    this.#box.replaceChildren(
      svg(
        "svg",
        { viewBox: `-2 -2 ${width + 4} ${height + 4}`, role: "img", "aria-label": described(pipeline) },
        ...this.#edges.map(({ path }) => path),
        ...this.#nodes.map(({ group }) => group),
      ),
    );
    this.#fit();
    this.update();
  }

  /** As wide as the panel, neither blown up nor too small to read; then the panel scrolls. */
  #fit() {
    const drawing = this.#box.firstElementChild;
    if (!drawing?.viewBox) return;
    const { width, height } = drawing.viewBox.baseVal;
    const scale = Math.max(SMALLEST_SCALE, Math.min(1, this.#box.clientWidth / width));
    setAttribute(drawing, "width", Math.floor(width * scale));
    setAttribute(drawing, "height", Math.ceil(height * scale));
  }
}

const RIGHTWARDS = {
  extents: ({ width, height }) => [width, height],
  point: (along, across) => [along, across],
};
const DOWNWARDS = {
  extents: ({ width, height }) => [height, width],
  point: (along, across) => [across, along],
};

/** A smooth line through the places, which leaves and reaches the sides of nodes at right angles. */
function curve(points, axis, along) {
  const shift = ([x, y], by) => {
    const [dx, dy] = axis.point(by, 0);
    return [x + dx, y + dy];
  };
  const half = along / 2;
  let line = `M${shift(points[0], half)}`;
  for (let step = 1; step < points.length; step += 1) {
    const from = shift(points[step - 1], half);
    const to = shift(points[step], -half);
    const reach = Math.abs(axis.point(1, 0)[0] ? to[0] - from[0] : to[1] - from[1]) / 2;
    line += `C${shift(from, reach)} ${shift(to, -reach)} ${to}`;
    if (step < points.length - 1) line += `L${shift(points[step], half)}`;
  }
  return line;
}

function described({ sources, operators, edges }) {
  const after = (name) => edges.filter(({ origin }) => origin === name).map(({ target }) => target);
  const all = [...sources, ...operators.map(({ name }) => name)];
  return all
    .filter((name) => after(name).length)
    .map((name) => `${name} feeds ${after(name).join(", ")}`)
    .join("; ");
}
