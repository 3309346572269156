import { command } from "../../command.ts";
import { connect, interruptible, nextCommand, signal, standardInput } from "../../context.ts";
import { usage } from "../../failure.ts";
import { siteId } from "../../site.ts";
import { output } from "../../terminal.ts";
import { changeEnv, type Variable } from "./change.ts";

export const setEnv = command(
  "set",
  "Set variables; the value of a NAME without = is read from standard input",
  "variablesChanged",
)
  .argument("<variables...>", "NAME=value, or one NAME whose value comes from standard input")
  .option("--secret", "store encrypted; the value is never shown again")
  .option("--scope <scope>", "build, runtime or both")
  .action(async (pairs, options) => {
    const { scope } = options;
    if (scope !== undefined && scope !== "build" && scope !== "runtime" && scope !== "both")
      throw usage("The scope is build, runtime or both.");
    const fromInput = pairs.filter((pair) => !pair.includes("="));
    if (fromInput.length > 1)
      throw usage("Only one value can come from standard input.", "Give the others as NAME=value.");
    const typed =
      fromInput.length === 0
        ? ""
        : output.isInteractive
          ? await hidden(fromInput[0] ?? "")
          : (await standardInput()).replace(/\r?\n$/, "");
    if (fromInput.length > 0 && typed === "")
      throw usage(
        `Standard input contains no value for ${fromInput[0]}.`,
        `To set it to an empty one: ${nextCommand(`env set ${fromInput[0]}=`)}`,
      );
    const variables: Variable[] = pairs.map((pair) => {
      const at = pair.indexOf("=");
      return {
        key: at < 0 ? pair : pair.slice(0, at),
        value: at < 0 ? typed : pair.slice(at + 1),
        encrypted: options.secret,
        scope,
      };
    });
    await changeEnv(await siteId(await connect()), variables);
  });

/** A value of one line from the terminal, which does not show it. @throws Failure (usage) where more lines follow */
async function hidden(key: string): Promise<string> {
  const { createInterface } = await import("node:readline/promises");
  const { Writable } = await import("node:stream");
  const { setTimeout } = await import("node:timers/promises");
  process.stderr.write(`Value of ${key} (not shown): `);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = interruptible(createInterface({ input: process.stdin, output: silent, terminal: true }));
  // The first line is the answer to the question, and no event.
  let hasMore = false;
  lines.on("line", () => (hasMore = true));
  try {
    const value = await lines.question("", { signal });
    // What is pasted comes in several parts; what is left of it would be typed into the shell.
    await setTimeout(100, undefined, { signal });
    if (hasMore || lines.line !== "")
      throw usage(
        "More than one line was typed or pasted, and only the first would be the value. Nothing was set.",
        `Put the value into a file: ${nextCommand(`env set ${key}`)} < file`,
      );
    return value;
  } finally {
    lines.close();
    process.stderr.write("\n");
  }
}
