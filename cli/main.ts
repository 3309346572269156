import { CommanderError } from "@commander-js/extra-typings";
import { enableCompileCache } from "./compile-cache.ts";
import { interrupt } from "./context.ts";
import { exitCodes, Interrupted } from "./failure.ts";
import { createProgram } from "./program.ts";
import { report } from "./report.ts";

enableCompileCache();

/** The first Ctrl-C lets the command end in order, the second ends it at once. */
let isInterrupted = false;
for (const name of ["SIGINT", "SIGTERM"] as const)
  process.on(name, () => {
    if (isInterrupted) process.exit(exitCodes.interrupted);
    isInterrupted = true;
    interrupt(new Interrupted());
  });
// The reader of a pipe has gone, as `head` does. What the command came to is not known then, so it is no success.
for (const stream of [process.stdout, process.stderr])
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(exitCodes.unread);
    throw error;
  });

async function main(): Promise<void> {
  const program = createProgram();
  const args = process.argv.slice(2);
  if (args.length === 0) program.outputHelp();
  // `berth help sites list`, as in many other programs.
  else if (args[0] === "help") await program.parseAsync([...args.slice(1), "--help"], { from: "user" });
  else await program.parseAsync(args, { from: "user" });
}

main().then(
  () => {
    if (isInterrupted) process.exitCode = exitCodes.interrupted;
  },
  async (error: unknown) => {
    process.exitCode =
      isInterrupted && !(error instanceof CommanderError) && (error as Error).name !== "Failure"
        ? exitCodes.interrupted
        : await report(error);
  },
);
