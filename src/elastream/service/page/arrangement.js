// The layout of a pipeline in pixels: to the right, or on a narrow screen downwards.

import { layered } from "./layout.js";
import { COMPACT, FULL } from "./nodes.js";

const NARROW = 620;
const NARROW_GAP = 28;
const HIGHEST = 520;
/** How much a drawing may be scaled down before its nodes are drawn smaller instead. */
const SLIGHTLY = 0.8;

const RIGHTWARDS = {
  extents: ({ width, height, layerGap }) => [width, height, layerGap],
  point: (along, across) => [along, across],
  along: ([x]) => x,
};
const DOWNWARDS = {
  extents: ({ width, height }) => [height, width, NARROW_GAP],
  point: (along, across) => [across, along],
  along: ([, y]) => y,
};

/** Full nodes where they fit into that width, else compact ones. */
export function arranged(pipeline, room) {
  const narrow = room < NARROW;
  const full = arrange(pipeline, FULL, narrow);
  const fits = full.width * SLIGHTLY <= room && (narrow || full.height <= HIGHEST);
  return fits ? full : arrange(pipeline, COMPACT, narrow);
}

function arrange({ sources, operators, edges }, size, narrow) {
  const axis = narrow ? DOWNWARDS : RIGHTWARDS;
  const [along, across, gap] = axis.extents(size);
  const names = [...sources, ...operators.map(({ name }) => name)];
  const { nodes, routes, layers, extent } = layered(names, edges, () => across, size.gap);
  const at = (node) => axis.point(node.layer * (along + gap) + along / 2, node.across);
  const [width, height] = axis.point(layers * (along + gap) - gap, extent);
  const corner = ([x, y]) => [x - size.width / 2, y - size.height / 2];
  return {
    size,
    narrow,
    width,
    height,
    corners: new Map(nodes.map((node) => [node.name, corner(at(node))])),
    lines: routes.map(({ origin, target, path }) => ({
      key: `${origin}>${target}`,
      line: curve(path.map(at), axis, along / 2),
    })),
  };
}

/** A smooth line through the places, which leaves and reaches the sides of nodes at right angles. */
function curve(points, axis, half) {
  const shift = ([x, y], by) => {
    const [dx, dy] = axis.point(by, 0);
    return [x + dx, y + dy];
  };
  let line = `M${shift(points[0], half)}`;
  points.slice(1).forEach((point, step) => {
    const from = shift(points[step], half);
    const to = shift(point, -half);
    const reach = (axis.along(to) - axis.along(from)) / 2;
    line += `C${shift(from, reach)} ${shift(to, -reach)} ${to}L${shift(point, point === points.at(-1) ? -half : half)}`;
  });
  return line;
}
