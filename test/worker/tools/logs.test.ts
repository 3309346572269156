import { expect } from "vitest";
import { operations } from "../../../protocol/api/operations.ts";
import { RequestStats, type SiteRequest } from "../../../protocol/api/requests.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { SiteSample } from "../../../protocol/api/running.ts";
import { contextOf } from "../../../worker/compose.ts";
import { reconcileBackups } from "../../../worker/jobs/backups/reconcile.ts";
import { answerNext, effectsOf, scene, useTool } from "../assistant.ts";
import { api, bindings, fail, jobOf, runningDatabase, runningSite } from "../service.ts";

const at = "2026-01-01T00:00:01.000000001Z";
const line = (text: string) => ({ at, stream: "stdout" as const, text });
const sample: SiteSample = {
  at: new Date().toISOString(),
  cpuMilli: 12,
  memoryMb: 34,
  networkInBytes: 5,
  networkOutBytes: 6,
  diskMb: null,
};

effectsOf("logs", {
  get_site_logs: [
    "asks the host, and shows the lines that hold a text",
    async () => {
      const { key, host } = await scene();
      const { siteId } = await runningSite(key, host, { name: "talks" });
      const since = "2026-01-01T00:00:00Z";
      const using = useTool(key, "get_site_logs", { site: "talks", search: "error", since });
      const question = await answerNext(host, {
        kind: "logs",
        lines: [line("all is well"), line("an error: no disk")],
      });
      expect(question).toMatchObject({ kind: "logs", siteId, after: since });
      expect((await using).result).toMatchObject([{ text: "an error: no disk" }]);
    },
  ],
  search_log_history: [
    "asks the host for lines with a text between two times",
    async () => {
      const { key, host } = await scene();
      const { siteId } = await runningSite(key, host, { name: "searched" });
      const from = "2026-01-01T00:00:00Z";
      const using = useTool(key, "search_log_history", { site: "searched", text: "disk", from });
      const question = await answerNext(host, {
        kind: "searchLog",
        lines: [line("no disk")],
        complete: false,
      });
      expect(question).toMatchObject({ kind: "searchLog", siteId, text: "disk", after: from, before: null });
      expect((await using).result).toMatchObject({ lines: [{ text: "no disk" }], complete: false });
    },
  ],
  get_access_logs: [
    "asks the host for requests of a kind, and refuses what is no kind",
    async () => {
      const { key, host } = await scene();
      const { siteId } = await runningSite(key, host, { name: "visited" });
      const request = operations.getSiteRequests.examples.answer.data[0] as SiteRequest;
      const args = { site: "visited", status: "5xx", path: "/orders", limit: 5 };
      const using = useTool(key, "get_access_logs", args);
      const question = await answerNext(host, { kind: "requests", requests: [request] });
      const filters = { status: "5xx", path: "/orders" };
      expect(question).toMatchObject({ kind: "requests", siteId, filters, limit: 6, follow: false });
      expect((await using).result).toMatchObject([{ path: request.path, status: request.status }]);
      const { reply } = await useTool(key, "get_access_logs", { site: "visited", status: "bad" });
      expect(reply.toolCalls).toMatchObject([{ tool: "get_access_logs", ok: false }]);
    },
  ],
  get_request_stats: [
    "asks the host for what it has counted, and shows the intervals with most failures",
    async () => {
      const { key, host } = await scene();
      const { siteId } = await runningSite(key, host, { name: "counted" });
      const stats = RequestStats.parse(operations.getSiteRequestStats.examples.answer);
      const [interval] = stats.series;
      const series = Array.from({ length: 60 }, (_, minute) => ({
        ...(interval as NonNullable<typeof interval>),
        at: `2026-11-21T11:${String(minute).padStart(2, "0")}:00.000Z`,
        statuses: { ...stats.totals.statuses, "5xx": minute === 30 ? 9 : 0 },
      }));
      const using = useTool(key, "get_request_stats", { site: "counted", window: "24h" });
      const question = await answerNext(host, { kind: "requestStats", stats: { ...stats, series } });
      expect(question).toEqual({ kind: "requestStats", siteId, window: "24h" });
      const { result } = (await using) as { result: { totals: object; notable: { at: string }[] } };
      expect(result.totals).toEqual(stats.totals);
      expect(result.notable.map(({ at: when }) => when)).toContain("2026-11-21T11:30:00.000Z");
      // As many as fit into what the model is given.
      expect(result.notable.length).toBeLessThanOrEqual(10);
    },
  ],
  get_site_metrics: [
    "asks the host for its samples",
    async () => {
      const { key, host } = await scene();
      await runningSite(key, host, { name: "measured" });
      const using = useTool(key, "get_site_metrics", { site: "measured", minutes: 1 });
      await answerNext(host, {
        kind: "metrics",
        samples: [{ ...sample, at: new Date(Date.now() - 90_000).toISOString() }, sample],
      });
      expect((await using).result).toEqual([sample]);
      const hour = Array.from({ length: 120 }, (_, at) => ({
        ...sample,
        at: new Date(Date.now() - (119 - at) * 30_000).toISOString(),
        networkInBytes: 123_456_789_012,
        networkOutBytes: 123_456_789_012,
        diskMb: 12_345.678,
      }));
      const again = useTool(key, "get_site_metrics", { site: "measured" });
      await answerNext(host, { kind: "metrics", samples: hour });
      const { result } = (await again) as { result: SiteSample[] };
      expect(result.at(-1)).toEqual(hour.at(-1));
    },
  ],
  get_disk_usage: [
    "asks the hosts what a site, a database or all of the account takes of their disks",
    async () => {
      const { key, host } = await scene();
      const { siteId } = await runningSite(key, host, { name: "large" });
      const { name, databaseId } = await runningDatabase(key, host);
      const taken = {
        writtenMb: 1.5,
        volumes: [{ name: "data", sizeMb: 20 }],
        images: [{ deploymentId: "dep_1", sizeMb: 300 }],
        logMb: 2,
        buildCacheMb: null,
        countedMb: 21.5,
      };
      const ofSite = { id: siteId as Id<"site">, ...taken };
      const ofDatabase = {
        id: databaseId as Id<"database">,
        ...taken,
        images: [],
        writtenMb: 0,
        countedMb: 40,
      };
      const using = useTool(key, "get_disk_usage", { site: "large" });
      expect(await answerNext(host, { kind: "disk", found: [ofSite] })).toEqual({
        kind: "disk",
        ids: [siteId],
      });
      expect((await using).result).toMatchObject({ name: "large", ...taken, limitMb: expect.any(Number) });
      const usingDatabase = useTool(key, "get_disk_usage", { db: name });
      await answerNext(host, { kind: "disk", found: [ofDatabase] });
      expect((await usingDatabase).result).toMatchObject({ kind: "database", countedMb: 40 });
      const usingAll = useTool(key, "get_disk_usage", {});
      const asked = await answerNext(host, { kind: "disk", found: [ofSite, ofDatabase] });
      expect(asked).toEqual({ kind: "disk", ids: [siteId, databaseId] });
      expect((await usingAll).result).toMatchObject({
        resources: [
          { name, countedMb: 40, volumesMb: 20, imagesMb: 0 },
          { name: "large", countedMb: 21.5, volumesMb: 20, imagesMb: 300 },
        ],
        truncated: false,
      });
    },
  ],
  list_container_events: [
    "asks the host what became of the containers of a site or database",
    async () => {
      const { key, host } = await scene();
      await runningSite(key, host, { name: "ended" });
      const oom = { at: sample.at, kind: "oom" as const, detail: "It used more than 256 MB." };
      const using = useTool(key, "list_container_events", { site: "ended" });
      await answerNext(host, { kind: "events", events: [oom] });
      expect((await using).result).toEqual([oom]);
      const { name } = await runningDatabase(key, host);
      const again = useTool(key, "list_container_events", { db: name });
      await answerNext(host, { kind: "events", events: [] });
      expect((await again).result).toEqual([]);
    },
  ],
  list_unhealthy_resources: [
    "names what is not well, with the reason, also where planned backups of a volume fail, and leaves out what is",
    async () => {
      const { key, host } = await scene();
      await runningSite(key, host, { name: "well" });
      const { siteId } = await runningSite(key, host, { name: "ill" });
      const volumes = [
        { name: "cache", mountPath: "/cache" },
        { name: "uploads", mountPath: "/uploads" },
      ];
      const { siteId: storing } = await runningSite(key, host, { name: "storing", volumes });
      const ran = (statement: string, id: string) => bindings.DB.prepare(statement).bind(id).run();
      await ran("UPDATE sites SET status = 'FAILED' WHERE id = ?", siteId);
      await api(key, "PATCH", `/sites/${storing}/volumes/uploads`, { backups: { schedule: "daily" } });
      await ran("UPDATE site_volumes SET next_backup_at = 1 WHERE site_id = ? AND name = 'uploads'", storing);
      await reconcileBackups(contextOf(bindings, { type: "system" }, () => undefined));
      const { job, attempt } = await jobOf(host, "volume.backup");
      await fail(host, job, attempt, "The host's disk is full");
      const { result } = await useTool(key, "list_unhealthy_resources", {});
      expect(result).toMatchObject({
        data: [
          {
            kind: "site",
            name: "storing",
            status: "RUNNING",
            reason: "backups of its volume uploads are failing: The host's disk is full",
            error: null,
          },
          { kind: "site", name: "ill", reason: "it is FAILED" },
        ],
      });
    },
  ],
});
