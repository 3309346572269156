import { isMainThread, workerData } from "node:worker_threads";

// Hosts receive a single file, which is also the entry point of the agent's threads.
if (isMainThread) await import("./index.ts");
else if ((workerData as { program?: string }).program === "inspect")
  await import("./image-build/inspect/inspect-thread.ts");
else await import("./image-build/prepare-thread.ts");
