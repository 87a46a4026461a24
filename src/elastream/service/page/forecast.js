// The state of the forecast: which model, how far off it was, and when another one stood in.

import { byId, element } from "./dom.js";
import * as figures from "./figures.js";

export function showForecast({ forecast }) {
  const facts = [
    ["Model", forecast.model ?? figures.UNKNOWN],
    [
      "Recent error",
      forecast.recent_error === null
        ? "not known yet"
        : `${figures.percent(forecast.recent_error)} of the input`,
    ],
    ["Fallbacks", figures.count(forecast.fallbacks)],
  ];
  if (forecast.last_fallback) facts.push(["Last one", forecast.last_fallback]);
  byId("forecast").replaceChildren(
    ...facts.map(([term, value]) => element("div", {}, element("dt", {}, term), element("dd", {}, value))),
  );
}
