// Server-sent events over fetch, which unlike EventSource can carry a token and knows why it failed.

import { request } from "./api.js";

/** The service says something at least every 15 s; a connection that is silent for longer is dead. */
const SILENCE = 40_000;

/** Opens the stream after event `last`; resolves, once the service answers, to its events. */
export async function openStream(last) {
  const abort = new AbortController();
  const headers = { Accept: "text/event-stream" };
  if (last !== null) headers["Last-Event-ID"] = String(last);
  const response = await request("api/stream", { headers, signal: abort.signal });
  return events(response.body, abort);
}

async function* events(body, abort) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let watchdog;
  let rest = "";
  try {
    for (;;) {
      watchdog = setTimeout(() => abort.abort(), SILENCE);
      const { done, value } = await reader.read();
      clearTimeout(watchdog);
      if (done) return;
      const blocks = (rest + value.replaceAll("\r", "")).split("\n\n");
      rest = blocks.pop();
      yield* blocks.map(parsed).filter((event) => event.data !== "");
    }
  } finally {
    clearTimeout(watchdog);
    abort.abort();
  }
}

/** One block of lines: `{ id, kind, data }`, the data still as text; comments have none. */
export function parsed(block) {
  const event = { id: null, kind: "message", data: "" };
  for (const line of block.split("\n")) {
    const [, field, value] = line.match(/^([^:]*):? ?(.*)$/);
    if (field === "id") event.id = Number(value);
    else if (field === "event") event.kind = value;
    else if (field === "data") event.data += value;
  }
  return event;
}
