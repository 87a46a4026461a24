// What has gone wrong with single events and replicas since the start, most events first.

import { byId, element } from "./dom.js";
import * as figures from "./figures.js";

export function showProblems({ problems: { operators, failures } }) {
  const entries = [
    ...failures.map(({ operator, error, events }) =>
      entry(operator, `${figures.count(events)} set aside`, error),
    ),
    ...Object.entries(operators).flatMap(([name, { dropped, restarted }]) => [
      ...(dropped ? [entry(name, `${figures.count(dropped)} lost`, "events that were dropped")] : []),
      ...(restarted ? [entry(name, `${figures.count(restarted)} restarted`, "replicas")] : []),
    ]),
  ];
  byId("problems").hidden = !entries.length;
  byId("problem-list").replaceChildren(...entries);
}

const entry = (operator, count, what) =>
  element(
    "li",
    {},
    element("span", { class: "head" }, element("b", {}, operator), element("span", { class: "worse" }, count)),
    element("span", { class: "what" }, what),
  );
