import type { Client } from "../../../client/index.ts";
import { interruptible, signal } from "../../context.ts";
import { report } from "../../report.ts";
import { dim, print, safe, say } from "../../terminal.ts";
import { resultText, written } from "./query.ts";

/** A prompt for where the engine's own client is not installed: one statement a line, each through the service. */
export async function promptFor(client: Client, { id, name }: { id: string; name: string }): Promise<void> {
  const { createInterface } = await import("node:readline/promises");
  say(
    dim(
      "One statement per line, read-only and in a session of its own; put ! before one that writes. An empty line or Ctrl-D ends.",
    ),
  );
  for (;;) {
    const lines = interruptible(createInterface({ input: process.stdin, output: process.stderr }));
    // Ctrl-D closes without an answer.
    const closed = new Promise<string>((resolve) => lines.once("close", () => resolve("")));
    const line = (await Promise.race([lines.question(`${safe(name)}> `, { signal }), closed])).trim();
    lines.close();
    if (line === "") return;
    const write = line.startsWith("!");
    const input = { id, statement: write ? line.slice(1) : line, limit: 100, timeoutSeconds: 30, write };
    try {
      print(
        resultText(await (write ? written(client, input) : client.call("queryDatabase", input, { signal }))),
      );
    } catch (error) {
      if (signal.aborted) throw error;
      // A statement that fails is no reason to leave.
      await report(error);
    }
  }
}
