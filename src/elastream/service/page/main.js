// Puts the page together.

import { Charts } from "./charts.js";
import { showConnection } from "./connection.js";
import { Control } from "./control.js";
import { Decisions } from "./decisions.js";
import { byId } from "./dom.js";
import { setZero } from "./figures.js";
import { showForecast } from "./forecast.js";
import { calmly } from "./frames.js";
import { showHealth } from "./health.js";
import { Graph } from "./graph.js";
import { follow } from "./live.js";
import { OperatorDialog } from "./operator_dialog.js";
import { Operators } from "./operators.js";
import { readColours } from "./palette.js";
import { showProblems } from "./problems.js";
import { followRuns } from "./runs.js";
import { Selection, busiest } from "./selection.js";
import { Store } from "./store.js";
import { startTheme } from "./theme.js";
import { Tiles } from "./tiles.js";
import { WhatIf } from "./what_if.js";

const store = new Store();
const selection = new Selection();
const dialog = new OperatorDialog(store);
const whatIf = new WhatIf(store);
const charts = new Charts(store, selection);
const views = [
  new Tiles(store),
  new Graph(store, selection),
  charts,
  new Operators(store, selection, (operator) => dialog.open(operator)),
];
new Control(store);
new Decisions(store);

document.addEventListener("click", ({ target }) => {
  if (target.matches("[data-close]")) target.closest("dialog").close();
});

startTheme(() => {
  readColours();
  charts.recolour();
  whatIf.recolour();
});

const redraw = calmly(() => {
  for (const view of views) view.update();
});
let known = null;
store.on("pipeline", () => {
  const { name, engine, version, operators, started, clock_zero: zero } = store.pipeline;
  setZero(zero);
  document.title = `${name} · elastream`;
  byId("pipeline-name").textContent = name;
  const where = { spark: "on Spark", simulation: "in the simulator", attached: "an attached query" };
  byId("pipeline-about").textContent = where[engine];
  byId("version").textContent = `elastream ${version}`;
  // Loaded again after a gap, the same run keeps the operators that were picked.
  const structure = JSON.stringify(operators.map((operator) => operator.name));
  if (known !== structure) selection.replace(busiest(store.series));
  known = structure;
  document.body.dataset.started = started;
});
store.on("samples", redraw);
store.on("settings", redraw);
store.on("forecast", () => showForecast(store));
store.on("health", () => showHealth(store));
store.on("problems", () => {
  showProblems(store);
  redraw();
});

followRuns();
await follow(store, showConnection);
