// Keeps the store up to date: loads it, follows the stream, and comes back when the stream breaks.

import * as api from "./api.js";
import { openStream } from "./event_stream.js";
import { HISTORY } from "./series.js";

const FIRST_WAIT = 500;
const LONGEST_WAIT = 5_000;

/** Follow the run until it ends; `report` hears "connecting", "live", "lost", "refused" or "ended". */
export async function follow(store, report) {
  const follower = new Follower(store);
  let wait = FIRST_WAIT;
  report("connecting");
  for (;;) {
    try {
      await follower.connect();
      report("live");
      wait = FIRST_WAIT;
      const outcome = await follower.listen();
      if (outcome === "ended") return report("ended");
      if (outcome === "gap") continue;
    } catch (error) {
      if (error instanceof api.Refusal && error.status === 401) return report("refused");
      console.warn(error);
    }
    report("lost");
    await pause(wait);
    wait = Math.min(2 * wait, LONGEST_WAIT);
  }
}

class Follower {
  #store;
  #stream;
  /** The number of the newest event that the store has taken in; null when it must be loaded. */
  #last = null;

  constructor(store) {
    this.#store = store;
  }

  async connect() {
    const pipeline = await api.getPipeline();
    // Numbers of another run mean nothing here.
    if (pipeline.started !== this.#store.pipeline?.started) this.#last = null;
    this.#last ??= await this.#load(pipeline);
    this.#stream = await openStream(this.#last);
  }

  /** Take in what comes; resolves to why it stopped: "ended", "gap" or "closed". */
  async listen() {
    for await (const { id, kind, data } of this.#stream) {
      if (kind === "end") return "ended";
      if (kind === "reset" || (id !== null && id !== this.#last + 1)) {
        this.#last = null;
        return "gap";
      }
      this.#last = id ?? this.#last;
      this.#store.apply(kind, JSON.parse(data));
    }
    return "closed";
  }

  /** The history comes first: what happens while the rest is loaded is in the stream after it. */
  async #load(pipeline) {
    const history = await api.getHistory(HISTORY);
    const [settings, decisions, forecast] = await Promise.all([
      api.getSettings(),
      api.getDecisions(200),
      api.getForecast(),
    ]);
    this.#store.load({ pipeline, settings, history, decisions, forecast });
    return history.event;
  }
}

/** Wait, but no longer than until the browser is online again or the page is looked at. */
function pause(milliseconds) {
  return new Promise((resolve) => {
    const over = new AbortController();
    const { signal } = over;
    const finish = () => {
      over.abort();
      resolve();
    };
    setTimeout(finish, milliseconds);
    addEventListener("online", finish, { signal });
    document.addEventListener("visibilitychange", () => document.hidden || finish(), { signal });
  });
}
