// Light or dark: what the system wants, unless one is chosen.

import { byId } from "./dom.js";

const KEY = "elastream-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

/** Follow the choice; `changed` runs after the colours changed. */
export function startTheme(changed) {
  const choice = byId("theme");
  choice.value = localStorage.getItem(KEY) ?? "system";
  const apply = () => {
    const system = dark.matches ? "dark" : "light";
    document.documentElement.dataset.theme = choice.value === "system" ? system : choice.value;
    changed();
  };
  choice.addEventListener("change", () => {
    localStorage.setItem(KEY, choice.value);
    apply();
  });
  dark.addEventListener("change", apply);
  apply();
}
