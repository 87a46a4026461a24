// The token: kept for as long as the tab, asked for when the service wants one.

import { byId } from "./dom.js";

const KEY = "elastream-token";
let asking = null;

export function authorization() {
  const token = sessionStorage.getItem(KEY);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

/** Ask for a token after a refusal; several requests that are refused at once share one question. */
export function askForToken(status) {
  asking ??= question(status === 403).finally(() => (asking = null));
  return asking;
}

/** Resolves to whether another token was given; one that may only read is kept if not. */
function question(onlyReads) {
  const dialog = byId("token-dialog");
  const form = dialog.querySelector("form");
  const refused = sessionStorage.getItem(KEY) !== null;
  const problem = onlyReads ? "This token may only read." : "That token was refused.";
  form.reset();
  form.querySelector("output").textContent = refused ? problem : "";
  form.token.setAttribute("aria-invalid", refused);
  dialog.showModal();
  return new Promise((resolve) => {
    let given = false;
    form.onsubmit = (event) => {
      event.preventDefault();
      given = form.token.value !== "";
      if (given) sessionStorage.setItem(KEY, form.token.value);
      dialog.close();
    };
    dialog.addEventListener(
      "close",
      () => {
        if (!given && !onlyReads) sessionStorage.removeItem(KEY);
        resolve(given);
      },
      { once: true },
    );
  });
}
