// The service's API: one function per request, and one kind of error.

import { askForToken, authorization } from "./token.js";

/** The service said no: what is wrong in general, and with which fields. */
export class Refusal extends Error {
  constructor(status, message, problems = []) {
    super(message);
    this.status = status;
    this.problems = problems;
  }
}

export const getPipeline = () => call("GET", "api/pipeline");
export const getRuns = () => call("GET", "api/runs");
export const getSettings = () => call("GET", "api/settings");
export const getHistory = (seconds) => call("GET", `api/history?seconds=${seconds}`);
export const getDecisions = (limit) => call("GET", `api/decisions?limit=${limit}`);
export const getForecast = () => call("GET", "api/forecast");

export const changeSettings = (changes) => call("PATCH", "api/settings", changes);
export const stopRun = () => call("POST", "api/stop", { drain: true });
export const replay = (choice) => call("POST", "api/what-if", choice);

const ofOperator = (name, what) => `api/operators/${encodeURIComponent(name)}/${what}`;
export const setLimits = (name, limits) => call("PUT", ofOperator(name, "limits"), limits);
export const releaseLimits = (name) => call("DELETE", ofOperator(name, "limits"));
export const setReplicas = (name, replicas) => call("PUT", ofOperator(name, "replicas"), { replicas });
export const releaseReplicas = (name) => call("DELETE", ofOperator(name, "replicas"));

/** The response to a request that the service accepts, after asking for a token if it must. */
export async function request(path, options = {}) {
  for (;;) {
    const headers = { ...options.headers, ...authorization() };
    const response = await fetch(path, { ...options, headers, cache: "no-store" });
    if (response.ok) return response;
    if (!response.headers.has("WWW-Authenticate")) throw await refusal(response);
    if (!(await askForToken(response.status))) throw await refusal(response);
  }
}

async function call(method, path, body) {
  const options = { method };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers = { "Content-Type": "application/json" };
  }
  return (await request(path, options)).json();
}

async function refusal(response) {
  const { detail } = await response.json().catch(() => ({}));
  if (Array.isArray(detail)) {
    const message = detail.map(({ field, problem }) => `${field}: ${problem}`).join("; ");
    return new Refusal(response.status, message, detail);
  }
  return new Refusal(response.status, detail ?? `The service answered ${response.status}.`);
}
