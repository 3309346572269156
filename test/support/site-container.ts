import type { SiteContainer } from "../../protocol/api/running.ts";

/** A site's only container, which is well. */
export const wellContainer: SiteContainer = {
  deploymentId: null,
  replica: 1,
  serves: true,
  running: true,
  exitCode: null,
  outOfMemory: false,
  restarts: 0,
  startedAt: "2026-01-01T00:00:00.000Z",
  finishedAt: null,
  listens: [{ port: 3000, loopbackOnly: false }],
  probe: { port: 3000, path: null, isHealthy: true, answer: "answers", durationMs: 2 },
};
