import { createParser } from "eventsource-parser";
import { notOurs } from "./errors.ts";

export type ServerEvent = { event: string; id: string | undefined; data: string };

/** The server-sent events of an answer, as they arrive (HTML standard, section 9.2). */
export async function* eventsOf(response: Response): AsyncGenerator<ServerEvent> {
  const isStream = response.headers.get("Content-Type")?.startsWith("text/event-stream");
  if (!isStream || response.body === null) throw notOurs(response);
  const ready: ServerEvent[] = [];
  const parser = createParser({
    onEvent: ({ event = "message", id, data }) => ready.push({ event, id, data }),
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      parser.feed(value);
      yield* ready.splice(0);
    }
  } finally {
    // A reader that goes away closes the connection.
    await reader.cancel().catch(() => undefined);
  }
}
