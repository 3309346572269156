import { call } from "../call.ts";
import type { SiteSample } from "../../../protocol/api/running.ts";
import { invalid } from "../../domain/app-error.ts";
import { databaseId, lastLines, siteId } from "../resources.ts";
import type { Tools } from "../tool.ts";

type Names =
  | "get_site_logs"
  | "search_log_history"
  | "get_access_logs"
  | "get_request_stats"
  | "get_site_metrics"
  | "get_disk_usage"
  | "list_container_events"
  | "list_unhealthy_resources";

/** The samples, thinned out to as many as a result may hold: of more, some would be cut out. */
export function window(samples: SiteSample[]): SiteSample[] {
  const step = Math.ceil(samples.length / 10);
  return samples.filter((_, index) => (samples.length - 1 - index) % step === 0);
}

const sum = (sizes: (number | null)[]) => sizes.reduce<number>((all, one) => all + (one ?? 0), 0);

export const runningTools: Tools<Names> = {
  get_site_logs: {
    async run(ctx, { site, tail, since, search }) {
      const id = await siteId(ctx, site);
      const log = await call(ctx, "getSiteLogs", {
        id,
        tail: search ? 1000 : (tail ?? 100),
        since,
      });
      if (log instanceof ReadableStream) return [];
      return lastLines(log.data, { tail, search }).map(({ at, stream, text }) => ({ at, stream, text }));
    },
  },
  search_log_history: {
    async run(ctx, { site, limit = 50, ...asked }) {
      const id = await siteId(ctx, site);
      const { data, complete } = await call(ctx, "searchSiteLogs", { id, limit, ...asked });
      return { lines: data.map(({ at, stream, text }) => ({ at, stream, text })), complete };
    },
  },
  get_access_logs: {
    async run(ctx, { site, limit = 20, ...filters }) {
      const id = await siteId(ctx, site);
      const requests = await call(ctx, "getSiteRequests", {
        id,
        ...filters,
        limit,
      });
      if (requests instanceof ReadableStream) return [];
      return requests.data;
    },
  },
  get_request_stats: {
    async run(ctx, { site, window: asked = "1h" }) {
      const id = await siteId(ctx, site);
      const { series, ...stats } = await call(ctx, "getSiteRequestStats", { id, window: asked });
      // What a model can read: where it was busiest, or failed most.
      const notable = series
        .toSorted((a, b) => b.statuses["5xx"] - a.statuses["5xx"] || b.requests - a.requests)
        .slice(0, 10)
        .toSorted((a, b) => a.at.localeCompare(b.at));
      return { ...stats, notable };
    },
  },
  get_site_metrics: {
    async run(ctx, { site, minutes = 60 }) {
      const id = await siteId(ctx, site);
      return window((await call(ctx, "getSiteMetrics", { id, minutes })).data);
    },
  },
  get_disk_usage: {
    async run(ctx, { site, db }) {
      if (site !== undefined && db !== undefined) throw invalid("site", "either site or db");
      if (site !== undefined) return call(ctx, "getSiteDisk", { id: await siteId(ctx, site) });
      if (db !== undefined) return call(ctx, "getDatabaseDisk", { id: await databaseId(ctx, db) });
      const { data, truncated } = await call(ctx, "getAccountDisk", {});
      // Of many, only what each takes in all.
      const resources = data.map(({ volumes, images, ...one }) => ({
        ...one,
        volumesMb: sum(volumes.map(({ sizeMb }) => sizeMb)),
        imagesMb: sum(images.map(({ sizeMb }) => sizeMb)),
      }));
      return { resources, truncated };
    },
  },
  list_container_events: {
    async run(ctx, { site, db, since }) {
      if ((site === undefined) === (db === undefined)) throw invalid("site", "either site or db");
      const events =
        site !== undefined
          ? await call(ctx, "getSiteEvents", { id: await siteId(ctx, site), since })
          : await call(ctx, "getDatabaseEvents", { id: await databaseId(ctx, db ?? ""), since });
      return events.data.slice(-50);
    },
  },
  list_unhealthy_resources: { run: (ctx) => call(ctx, "listUnhealthy", {}) },
};
