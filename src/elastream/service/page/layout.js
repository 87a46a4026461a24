// Where the nodes of a pipeline go: layers by longest path, few crossings, edges close to straight.
//
// Positions have two axes: `layer`, the way events flow, and `across`, at right angles to it.

const SWEEPS = 12;

/**
 * `sizes` gives, for a node's name, its extent across the flow; `gap` is kept between neighbours.
 * Returns the nodes with `layer` and `across` (its middle), the edges with the places they pass,
 * one per layer, and the extent of it all across the flow.
 */
export function layered(names, edges, sizes, gap) {
  const depth = depths(names, edges);
  const layers = [];
  const put = (node) => {
    (layers[node.layer] ??= []).push(node);
    return node;
  };
  const nodes = new Map(
    names.map((name) => [
      name,
      put({ name, layer: depth.get(name), size: sizes(name), before: [], after: [], across: 0 }),
    ]),
  );
  const routes = edges.map(({ origin, target }) => ({
    origin,
    target,
    path: route(nodes.get(origin), nodes.get(target), put),
  }));
  reduceCrossings(layers);
  align(layers, gap);
  const all = layers.flat();
  const start = Math.min(...all.map(({ across, size }) => across - size / 2));
  for (const node of all) node.across -= start;
  const extent = Math.max(...all.map(({ across, size }) => across + size / 2));
  return { nodes: [...nodes.values()], routes, layers: layers.length, extent };
}

/** The longest way to each node from one that nothing leads to. */
function depths(names, edges) {
  const depth = new Map(names.map((name) => [name, 0]));
  for (let round = 0, moved = true; moved && round < names.length; round += 1) {
    moved = false;
    for (const { origin, target } of edges) {
      if (depth.get(target) <= depth.get(origin)) {
        depth.set(target, depth.get(origin) + 1);
        moved = true;
      }
    }
  }
  return depth;
}

/** Nodes from one to the other, with an empty one in every layer between, which keeps a lane free. */
function route(origin, target, put) {
  const path = [origin];
  for (let layer = origin.layer + 1; layer < target.layer; layer += 1) {
    path.push(put({ layer, size: 8, before: [], after: [], across: 0 }));
  }
  path.push(target);
  for (let step = 1; step < path.length; step += 1) {
    path[step - 1].after.push(path[step]);
    path[step].before.push(path[step - 1]);
  }
  return path;
}

/** Order each layer by the mean place of its neighbours, down and up; keep the best order seen. */
function reduceCrossings(layers) {
  let best = null;
  number(layers);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const crossings = countCrossings(layers);
    if (best === null || crossings < best.crossings) {
      best = { crossings, order: layers.map((layer) => [...layer]) };
    }
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : layers.toReversed()) {
      for (const node of layer) {
        const neighbours = down ? node.before : node.after;
        node.wish = neighbours.length ? mean(neighbours.map(({ place }) => place)) : node.place;
      }
      layer.sort((a, b) => a.wish - b.wish);
      layer.forEach((node, place) => (node.place = place));
    }
  }
  layers.forEach((layer, index) => layer.splice(0, layer.length, ...best.order[index]));
  number(layers);
}

const number = (layers) => layers.forEach((layer) => layer.forEach((node, place) => (node.place = place)));

function countCrossings(layers) {
  let crossings = 0;
  for (const layer of layers) {
    const links = layer.flatMap((node) => node.after.map((next) => [node.place, next.place]));
    links.forEach(([a, b], index) => {
      for (const [c, d] of links.slice(index + 1)) if ((a - c) * (b - d) < 0) crossings += 1;
    });
  }
  return crossings;
}

/** Move nodes towards the middle of their neighbours, as far as the order and the gap allow. */
function align(layers, gap) {
  for (const layer of layers)
    place(
      layer,
      layer.map(() => 0),
      gap,
    );
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (const layer of sweep % 2 ? layers.toReversed() : layers) {
      const wishes = layer.map(({ before, after, across }) => {
        const neighbours = [...before, ...after];
        return neighbours.length ? mean(neighbours.map((node) => node.across)) : across;
      });
      place(layer, wishes, gap);
    }
  }
}

/** The places nearest to the wishes, in least squares, that keep order and gap (pooled violators). */
function place(layer, wishes, gap) {
  const offsets = [0];
  for (let index = 1; index < layer.length; index += 1) {
    offsets.push(offsets[index - 1] + (layer[index - 1].size + layer[index].size) / 2 + gap);
  }
  const blocks = [];
  layer.forEach((_, index) => {
    let block = { sum: wishes[index] - offsets[index], members: 1 };
    while (blocks.length && blocks.at(-1).sum / blocks.at(-1).members > block.sum / block.members) {
      const previous = blocks.pop();
      block = { sum: previous.sum + block.sum, members: previous.members + block.members };
    }
    blocks.push(block);
  });
  let index = 0;
  for (const { sum, members } of blocks) {
    for (let member = 0; member < members; member += 1, index += 1) {
      layer[index].across = sum / members + offsets[index];
    }
  }
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
