import { parentPort, workerData } from "node:worker_threads";
import { JobError } from "../job.ts";
import type { Given as ToInspect, FromThread as Inspected } from "./inspect/inspect-thread.ts";
import type { Given as ToPrepare } from "./prepare-thread.ts";

export type Failed = { type: "failed"; message: string; isForOwner: boolean };

/** The program of the threads that read repositories; what each does not need is not loaded. */
async function run(): Promise<void> {
  if (parentPort === null) throw new Error("This is a thread's program");
  const port = parentPort;
  const given = workerData as ToInspect | ToPrepare;
  const say = (message: Inspected | Failed) => port.postMessage(message);
  try {
    if (given.program === "inspect") {
      const { inspectInThread } = await import("./inspect/inspect-thread.ts");
      say({ type: "described", described: await inspectInThread(given) });
    } else {
      const { prepareInThread } = await import("./prepare-thread.ts");
      await prepareInThread(port, given);
    }
  } catch (error) {
    say({
      type: "failed",
      message: error instanceof Error ? error.message : String(error),
      isForOwner: error instanceof JobError,
    });
  }
  port.close();
}
void run();
