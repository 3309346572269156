import type { LogLine } from "../../protocol/api/deployments.ts";
import { plain } from "../../protocol/redact.ts";

const escaped = (text: string): string =>
  plain(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/**
 * Streams a page: the part before `mark`, then the lines of a log's server-sent events as they arrive, then what
 * `last` makes of the rest. This follows a log without a script.
 */
export function linesInto(
  page: string,
  mark: string,
  events: ReadableStream<Uint8Array>,
  last: () => Promise<string>,
): ReadableStream<Uint8Array> {
  const [head = "", foot = ""] = page.split(mark);
  let rest = "";
  let isEmpty = true;
  const lines = new TransformStream<string, string>({
    start: (out) => out.enqueue(head),
    transform(chunk, out) {
      const parts = (rest + chunk).split("\n\n");
      rest = parts.pop() ?? "";
      const text = parts.map(lineOf).join("");
      isEmpty &&= text === "";
      out.enqueue(text);
    },
    async flush(out) {
      if (isEmpty) out.enqueue("The log is no longer available.");
      const result = await last();
      out.enqueue(foot.replace("</pre></div>", (end) => end + result));
    },
  });
  return events.pipeThrough(new TextDecoderStream()).pipeThrough(lines).pipeThrough(new TextEncoderStream());
}

function lineOf(event: string): string {
  const [, data] = /^event: line\ndata: (.*)$/m.exec(event) ?? [];
  return data === undefined ? "" : `${escaped((JSON.parse(data) as LogLine).text)}\n`;
}
