// Keeps the store up to date: loads it, follows the stream, and comes back when the stream breaks.

import * as api from "./api.js";
import { openStream } from "./event_stream.js";
import { HISTORY } from "./series.js";

const FIRST_WAIT = 500;
const LONGEST_WAIT = 5_000;

/** Follow the run until it ends; `report` hears "connecting", "live", "lost", "refused" or "ended". */
export async function follow(store, report) {
  let last = null;
  let wait = FIRST_WAIT;
  report("connecting");
  for (;;) {
    try {
      const pipeline = await api.getPipeline();
      // Numbers of another run mean nothing here.
      if (pipeline.started !== store.pipeline?.started) last = null;
      // Open first, load second: what happens in between waits in the stream.
      const stream = await openStream(last);
      if (last === null) await load(store, pipeline);
      report("live");
      wait = FIRST_WAIT;
      for await (const event of stream) {
        const missed = last !== null && event.id !== null && event.id !== last + 1;
        if (missed || event.kind === "reset") await load(store, pipeline);
        last = event.id ?? last;
        if (event.kind === "end") return report("ended");
        store.apply(event.kind, JSON.parse(event.data));
      }
    } catch (error) {
      if (error instanceof api.Refusal && error.status === 401) return report("refused");
      if (!(error instanceof api.Refusal) && !isNetworkError(error)) console.error(error);
    }
    report("lost");
    await pause(wait);
    wait = Math.min(2 * wait, LONGEST_WAIT);
  }
}

async function load(store, pipeline) {
  const [settings, history, decisions, forecast] = await Promise.all([
    api.getSettings(),
    api.getHistory(HISTORY),
    api.getDecisions(200),
    api.getForecast(),
  ]);
  store.load({ pipeline, settings, history, decisions, forecast });
}

const isNetworkError = (error) => error instanceof TypeError || error.name === "AbortError";

/** Wait, but no longer than until the browser is online again or the page is looked at. */
function pause(milliseconds) {
  return new Promise((resolve) => {
    const over = new AbortController();
    const finish = () => {
      over.abort();
      resolve();
    };
    const timer = setTimeout(finish, milliseconds);
    over.signal.addEventListener("abort", () => clearTimeout(timer));
    addEventListener("online", finish, { signal: over.signal });
    document.addEventListener("visibilitychange", () => document.hidden || finish(), { signal: over.signal });
  });
}
