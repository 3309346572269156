import { join } from "node:path";
import { Worker } from "node:worker_threads";
import type { Given as ToInspect } from "./inspect/inspect-thread.ts";
import type { Given as ToPrepare } from "./prepare-thread.ts";
import { threadCode } from "./thread-code.ts";

/** A thread that reads one repository, with memory of its own. */
export const openThread = (workerData: ToInspect | ToPrepare, memoryMb: number): Worker =>
  new Worker(threadCode ?? join(import.meta.dirname, "thread.ts"), {
    eval: threadCode !== null,
    workerData,
    resourceLimits: { maxOldGenerationSizeMb: memoryMb },
    // Neither the host's token nor the flags of this process are its business.
    env: {},
    execArgv: [],
  });
