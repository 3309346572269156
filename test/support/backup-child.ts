import { createStore } from "../../agent/databases/backups/store.ts";
import { createEngine } from "../../agent/docker/client.ts";
import { backupDatabase } from "../../agent/handlers/backup-database.ts";
import type { Host } from "../../agent/host.ts";
import type { JobArgs } from "../../protocol/agent/jobs.ts";
import { jobRun } from "./job-run.ts";

/** One backup in its own process, which a test or benchmark may kill or measure. */
const { socketPath, url, token, agentId, args } = JSON.parse(process.env["BACKUP"] ?? "{}") as {
  socketPath: string;
  url: string;
  token: string;
  agentId: string;
  args: JobArgs<"database.backup">;
};
const host = {
  agentId,
  engine: createEngine({ socketPath }),
  backups: createStore({ url, token }),
} as unknown as Host;
const signal = new AbortController().signal;
globalThis.gc?.();
const startBytes = process.memoryUsage().rss;
let peakBytes = startBytes;
const sampling = setInterval(() => (peakBytes = Math.max(peakBytes, process.memoryUsage().rss)), 20);
const started = performance.now();
await backupDatabase(host, args, jobRun({ signal }));
clearInterval(sampling);
console.log(JSON.stringify({ ms: performance.now() - started, roseBytes: peakBytes - startBytes }));
process.exit(0);
