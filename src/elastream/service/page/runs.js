// Links to the other runs of the same program, when there are any.

import { Refusal, getRuns } from "./api.js";
import { byId } from "./dom.js";

const EVERY = 5_000;
const NUMBERED = /runs\/(\d+)\/$/;

/** Look for other runs now and again, as long as somebody looks at the page. */
export async function followRuns() {
  for (;;) {
    if (!document.hidden) {
      try {
        showRuns(await getRuns());
      } catch (error) {
        // Who gave no token is not asked again; that a connection is lost, its own badge says.
        if (error instanceof Refusal) return;
      }
    }
    await new Promise((resolve) => setTimeout(resolve, EVERY));
  }
}

function showRuns(runs) {
  const bar = byId("runs");
  const here = Number(location.pathname.match(NUMBERED)?.[1] ?? runs[0]?.number);
  const root = location.pathname.replace(NUMBERED, "");
  const links = runs.map(({ number, name, state }) => {
    const link = document.createElement("a");
    link.href = `${root}runs/${number}/`;
    link.textContent = state === "running" ? name : `${name} (${state})`;
    link.dataset.state = state;
    if (number === here) link.setAttribute("aria-current", "page");
    return link;
  });
  bar.replaceChildren(...links);
  bar.hidden = runs.length < 2;
}
