import { parentPort, type MessagePort } from "node:worker_threads";
import { JobError } from "../job.ts";
import type { Given as ToInspect, FromThread as Inspected } from "./inspect/inspect-thread.ts";
import type { Given as ToPrepare } from "./prepare-thread.ts";

export type Given = ToInspect | ToPrepare;
/** What the thread is asked for, and where it answers. */
export type Task = Given & { port: MessagePort };
export type Failed = { type: "failed"; message: string; isForOwner: boolean };

/** The program of the threads that read repositories; what a task does not need is not loaded. */
parentPort?.on("message", ({ port, ...given }: Task) => void run(given, port));

async function run(given: Given, port: MessagePort): Promise<void> {
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
}
