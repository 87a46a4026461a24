// Forms that speak to the service: one request at a time, problems shown at their fields.

import { Refusal } from "./api.js";
import { element } from "./dom.js";

/**
 * Run `send` for a form and say how it went; resolves to its answer, or to undefined when refused.
 * `done` is what to say on success.
 */
export async function submit(form, send, done) {
  const output = form.querySelector("output.result");
  clearProblems(form);
  output.textContent = "";
  form.setAttribute("aria-busy", "true");
  try {
    const answer = await send();
    output.textContent = done;
    return answer;
  } catch (error) {
    output.dataset.failed = "";
    output.textContent = showProblems(form, error);
    return undefined;
  } finally {
    form.removeAttribute("aria-busy");
  }
}

export function onSubmit(form, handle) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    handle();
  });
}

/** A number as typed; what is no number goes to the service as null, which says what it wants. */
export const numberIn = (input) => (input.value.trim() === "" ? null : Number(input.value));

export function fillChoices(form, choices) {
  for (const select of form.querySelectorAll("select[data-choices]")) {
    const chosen = select.value;
    const names = choices[select.dataset.choices];
    select.replaceChildren(...names.map((name) => element("option", { value: name }, name)));
    if (names.includes(chosen)) select.value = chosen;
  }
}

/** Set a field; a choice that the service runs with but does not offer is added to the others. */
export function choose(field, value) {
  field.value = value;
  if (field.value === "" && typeof value === "string") {
    field.append(element("option", { value }, value));
    field.value = value;
  }
}

export function clearProblems(form) {
  for (const problem of form.querySelectorAll(".problem")) problem.remove();
  for (const field of form.querySelectorAll("[aria-invalid]")) {
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-describedby");
  }
  delete form.querySelector("output.result").dataset.failed;
}

/** Puts each problem at its field; returns what is left to say. */
function showProblems(form, error) {
  if (!(error instanceof Refusal)) return "The service cannot be reached; nothing was changed.";
  const rest = [];
  for (const { field, problem } of error.problems) {
    const input = form.elements.namedItem(field);
    if (!input) {
      rest.push(`${field}: ${problem}`);
      continue;
    }
    const id = `${form.id}-${field}-problem`;
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-describedby", id);
    input.closest("label").after(element("p", { id, class: "problem" }, problem));
  }
  form.querySelector("[aria-invalid]")?.focus();
  if (error.problems.length) return rest.join("; ") || "Not changed.";
  return error.message;
}
