import { isMainThread } from "node:worker_threads";

// What hosts are served is one file, with which the agent's threads begin too.
if (isMainThread) await import("./index.ts");
else await import("./image-build/prepare-thread.ts");
