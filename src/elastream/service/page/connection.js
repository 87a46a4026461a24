// Whether the page is live, in words.

import { byId } from "./dom.js";

const WORDS = {
  connecting: "Connecting…",
  live: "Live",
  lost: "Connection lost, reconnecting…",
  refused: "Not allowed without a token",
  ended: "The run is over",
};
const BANNERS = {
  lost: "The service cannot be reached. This page shows the last known state and reconnects by itself.",
  refused: "The service requires a token. Reload this page to enter one.",
  ended: "The run is over. This is how it ended.",
};

const STEERABLE = ["live", "lost"];

export function showConnection(state) {
  const badge = byId("connection");
  if (badge.dataset.state === state) return;
  badge.dataset.state = state;
  badge.textContent = WORDS[state];
  const banner = byId("banner");
  banner.textContent = BANNERS[state] ?? "";
  banner.hidden = !banner.textContent;
  banner.dataset.state = state;
  document.body.dataset.connection = state;
  for (const form of ["settings", "switches", "limits", "by-hand"])
    byId(form).inert = !STEERABLE.includes(state);
}
