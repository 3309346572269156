import { fstatSync, readFileSync, type Stats } from "node:fs";
import { command, whole } from "../command.ts";
import { connect, nextCommand, signal } from "../context.ts";
import { Failure, usage } from "../failure.ts";
import { lineOf } from "../log-lines.ts";
import { siteId } from "../site.ts";
import { dim, output, print, quoted, safe, say, show, spin } from "../terminal.ts";
import { setTimeout as delay } from "node:timers/promises";

/** The line for `sh`. One word may be a whole line, as in berth exec 'a && b'. */
export const shellLine = (words: readonly string[]): string =>
  words.length === 1 ? (words[0] ?? "") : words.map(quoted).join(" ");

/** A file of which nothing was read yet. One that a loop or a script reads is for it; what is in a pipe cannot be told. */
function isUnreadFile(input: Stats): boolean {
  if (!input.isFile() || input.size === 0) return false;
  try {
    return /^pos:\s+0$/m.test(readFileSync("/proc/self/fdinfo/0", "utf8"));
  } catch {
    // Another system than Linux.
    return false;
  }
}

export const exec = command(
  "exec",
  "Run a one-off command in a new container of the site's image, and show its output",
  "getCommand",
)
  .argument("<command...>", "put -- before it: berth exec -- npm run migrate")
  .option("--timeout <seconds>", "when to stop it", whole, 600)
  .option("--detach", "do not wait for its end")
  .action(async (words, options) => {
    const input = fstatSync(0);
    if (isUnreadFile(input))
      throw usage(
        "exec passes no input to the command, so what is at its standard input would be lost.",
        "Import a dump with `berth databases connect <database> < file`. For a command that needs no input, add < /dev/null.",
      );
    if (input.isFIFO()) say(dim("exec passes no input to the command."));
    const client = await connect();
    const id = await siteId(client);
    // Not cut off by Ctrl-C: a command whose id is unknown could not be cancelled.
    const { id: job } = await client.call("runCommand", {
      id,
      command: shellLine(words),
      timeoutSeconds: options.timeout,
    });
    if (options.detach) {
      show("getCommand", await client.call("getCommand", { id: job }, { signal }), () => job);
      return;
    }
    const cancel = () => void client.call("cancelCommand", { id: job }).catch(() => undefined);
    signal.addEventListener("abort", cancel);
    const spinner = spin("waiting for a host …");
    let hasEnded = false;
    try {
      for await (const event of client.stream("getCommandLogs", { id: job }, { signal })) {
        spinner.stop();
        const entry = lineOf(event);
        if (entry === null) continue;
        if (entry.stream === "system") say(dim(safe(entry.text)));
        else if (output.json || entry.stream === "stderr") process.stderr.write(`${safe(entry.text)}\n`);
        else print(safe(entry.text));
      }
      for (;;) {
        const done = await client.call("getCommand", { id: job }, { signal });
        hasEnded = done.finishedAt !== null;
        if (hasEnded) {
          if (output.json) show("getCommand", done, () => "");
          if (done.status !== "SUCCEEDED")
            throw new Failure(
              `The command ended as ${done.status}${done.error === null ? "" : `: ${safe(done.error)}`}`,
              {
                hint: `Its exit code is ${done.exitCode ?? "unknown"}; ${nextCommand(`jobs show ${job}`, null)}`,
              },
            );
          return;
        }
        await delay(500, undefined, { signal });
      }
    } finally {
      spinner.stop();
      if (signal.aborted) {
        say("\nCancelling the command …");
        await client.call("cancelCommand", { id: job }).catch(() => undefined);
      } else if (!hasEnded)
        say(`The command continues without you: ${nextCommand(`jobs show ${job}`, null)}`);
      signal.removeEventListener("abort", cancel);
    }
  });
