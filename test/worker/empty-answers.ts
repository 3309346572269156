import { operations } from "../../protocol/api/operations.ts";

const silent = {
  sizeMb: 0,
  connections: { used: 0, max: 0 },
  cacheHitRatio: null,
  uptimeSeconds: 0,
  activeQueries: [],
  slowQueries: [],
};

/** What a host that knows nothing of its sites answers, by the kind of question. */
export const emptyAnswers = {
  logs: { lines: [] },
  searchLog: { lines: [], complete: true },
  files: { found: operations.browseFiles.examples.answer },
  metrics: { samples: [] },
  events: { events: [] },
  requests: { requests: [] },
  requestStats: { stats: operations.getSiteRequestStats.examples.answer },
  volumes: { volumes: [] },
  disk: { found: [] },
  removeVolume: {},
  certificate: { isServed: true, tls: true, isValid: true, certificate: null },
  held: { ids: [] },
  kept: { kept: [] },
  removeKept: {},
  keptVolumes: {},
  removeKeptVolumes: {},
  insight: { insight: silent },
  schema: { schema: { tables: [], keyspaces: [], truncated: false } },
  endSession: { ended: true },
  health: { health: { route: "none", hostnames: [], containers: [], diskFreeMb: null } },
  machine: {
    usage: {
      at: "2026-01-01T00:00:00.000Z",
      cpuCount: 2,
      cpuBusy: null,
      memory: { usedMb: 1, totalMb: 2 },
      disk: null,
    },
  },
  source: { found: operations.inspectSource.examples.answer },
  query: { result: { columns: [], rows: [], truncated: false, affectedRows: null, durationMs: 0 } },
};
