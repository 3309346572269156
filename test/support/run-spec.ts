import type { RunSpec } from "../../protocol/agent/jobs.ts";
import { formatId } from "../../protocol/ids.ts";

/** A minimal site, as sent to a host. */
export const runSpec = (changes: Partial<RunSpec> = {}): RunSpec => ({
  siteId: formatId("site", 1, new Uint8Array(10)),
  accountId: formatId("account", 1, new Uint8Array(10)),
  hostnames: ["a.localhost"],
  port: 3000,
  startCommand: null,
  healthCheckPath: null,
  startTimeoutSeconds: 5,
  env: [],
  limits: { memoryMb: 64, cpuMilli: 500, pids: 64 },
  replicas: 1,
  volumes: [],
  ...changes,
});
