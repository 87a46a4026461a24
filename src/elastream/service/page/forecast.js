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
    [
      "90 % band",
      forecast.coverage === null
        ? "not known yet"
        : `held ${figures.percent(forecast.coverage)}, pinball loss ${figures.rate(forecast.pinball)}`,
    ],
    ["Fallbacks", figures.count(forecast.fallbacks)],
  ];
  const trusted = Object.entries(forecast.trusts ?? {});
  if (trusted.length) {
    facts.push(["Trusts", trusted.map(([name, weight]) => `${name} ${figures.percent(weight)}`).join(", ")]);
  }
  if (forecast.last_fallback) facts.push(["Last one", forecast.last_fallback]);
  byId("forecast").replaceChildren(
    ...facts.map(([term, value]) => element("div", {}, element("dt", {}, term), element("dd", {}, value))),
  );
}
