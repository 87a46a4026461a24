// How uPlot is to draw a chart of the page.

import { clock, clockOffset } from "./figures.js";
import { grid, line, text } from "./palette.js";

const AXIS_WIDTH = 56;
const FONT = "11px system-ui, sans-serif";
const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];
const WHOLE_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
const MOVES = ["mousemove", "mouseleave"];
/** Lines on the same level are drawn this far apart, so that none hides another. */
const APART = 1.5;

/** For what `Chart` is made with; `cursorMoved` runs when the cursor has moved. */
export function plotOptions({ lines, width, height, axis, top, steps, sync, zoomed, cursorMoved }) {
  const look = { stroke: text, font: FONT, grid: { stroke: grid, width: 1 }, ticks: { show: false } };
  return {
    width,
    height,
    legend: { show: false },
    padding: [8, 26, 0, 0],
    cursor: {
      // The charts share where the cursor is, but only the one that was dragged over zooms.
      sync: { key: sync, scales: ["x", null], filters: { pub: (event) => MOVES.includes(event) } },
      drag: { x: Boolean(zoomed), y: false, setScale: false },
      y: false,
      points: { size: 6 },
    },
    scales: {
      x: { time: false },
      y: { range: (_, low, high) => [0, (steps ? 1.15 : 1.05) * Math.max(top, high ?? 0) || 1] },
    },
    axes: [
      {
        ...look,
        incrs: TIME_STEPS,
        size: 26,
        space: 90,
        splits: wholeTimes,
        values: (_, times) => times.map(clock),
      },
      {
        ...look,
        size: AXIS_WIDTH,
        space: 30,
        incrs: steps ? WHOLE_STEPS : undefined,
        values: (_, values) => values.map(axis),
      },
    ],
    series: [
      {},
      ...lines.map(({ slot, dash, edge }, index) => ({
        stroke: () => (edge ? "transparent" : line(slot)),
        width: edge ? 0 : 1.5,
        dash: dash ? [6, 4] : undefined,
        points: { show: false },
        paths: steps ? levels(index, lines.length) : undefined,
      })),
    ],
    bands: bands(lines),
    hooks: { setCursor: [cursorMoved], setSelect: [(plot) => select(plot, zoomed)] },
  };
}

/** What is between two edges, filled: the lower one comes first. */
function bands(lines) {
  const edges = lines.flatMap(({ edge }, index) => (edge ? [index + 1] : []));
  if (edges.length < 2) return [];
  const [low, high] = edges;
  return [{ series: [high, low], fill: () => `color-mix(in srgb, ${line(lines[low - 1].slot)} 18%, transparent)` }];
}

/** Where the time of the day is a multiple of the step. */
function wholeTimes(plot, axis, first, last, step) {
  const offset = clockOffset();
  const times = [];
  for (let time = Math.ceil((first + offset) / step) * step - offset; time <= last; time += step) times.push(time);
  return times;
}

/** Levels instead of slopes, with a corner only where the level changes; each line a little above the one before. */
function levels(index, lines) {
  return (plot, column, first, last) => {
    const [times, values] = [plot.data[0], plot.data[column]];
    const level = plot.bbox.height / plot.scales.y.max;
    const up = index * Math.min(APART * devicePixelRatio, level / (lines + 1));
    const x = (sample) => plot.valToPos(times[sample], "x", true);
    const y = (value) => plot.valToPos(value, "y", true) - up;
    const stroke = new Path2D();
    let drawn = null;
    // A value holds for the time up to its sample.
    for (let sample = first; sample <= last + 1; sample += 1) {
      const value = sample > last ? null : (values[sample] ?? null);
      if (value === drawn) continue;
      const corner = x(Math.max(first, sample - 1));
      if (drawn !== null) stroke.lineTo(corner, y(drawn));
      if (drawn !== null && value !== null) stroke.lineTo(corner, y(value));
      if (drawn === null) stroke.moveTo(corner, y(value));
      drawn = value;
    }
    return { stroke, fill: null, clip: null, band: null, gaps: null, flags: 1 };
  };
}

/** Take what was dragged over as the time to show. */
function select(plot, zoomed) {
  const { left, width } = plot.select;
  if (width === 0) return;
  zoomed?.([plot.posToVal(left, "x"), plot.posToVal(left + width, "x")]);
  plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
}
