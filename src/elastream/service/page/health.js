// How the run is: a word in the bar, and a banner with the reason when something is wrong.

import { byId, setText } from "./dom.js";

const BANNERS = {
  degraded: "The run is degraded",
  waiting: "The run is waiting",
  failed: "The run has failed",
};

export function showHealth({ health: { state, why } }) {
  const badge = byId("health");
  badge.hidden = false;
  badge.dataset.state = state;
  setText(badge, state);
  const banner = byId("health-banner");
  banner.hidden = !(state in BANNERS);
  banner.dataset.state = state;
  setText(banner, banner.hidden ? "" : `${BANNERS[state]}: ${why}`);
}
