import { isMainThread, workerData } from "node:worker_threads";

// What hosts are served is one file, with which the agent's threads begin too.
if (isMainThread) await import("./index.ts");
else if ((workerData as { program?: string }).program === "inspect")
  await import("./image-build/inspect/inspect-thread.ts");
else await import("./image-build/prepare-thread.ts");
