import { call } from "../../api/call.ts";
import type { SiteSample } from "../../../protocol/api/running.ts";
import { invalid } from "../../domain/app-error.ts";
import { databaseId, lastLines, siteId } from "../resources.ts";
import type { Tools } from "../tool.ts";

type Names = "get_site_logs" | "get_site_metrics" | "list_container_events" | "list_unhealthy_resources";

/** The samples of the last minutes, thinned out to a readable number. */
export function window(samples: SiteSample[], minutes = 60): SiteSample[] {
  const shown = samples.slice(-minutes);
  const step = Math.ceil(shown.length / 60);
  return shown.filter((_, index) => (shown.length - 1 - index) % step === 0);
}

export const runningTools: Tools<Names> = {
  get_site_logs: {
    async run(ctx, { site, tail, search }) {
      const id = await siteId(ctx, site);
      const log = await call(ctx, "getSiteLogs", { id, follow: "0", tail: search ? 1000 : (tail ?? 100) });
      if (log instanceof ReadableStream) return [];
      return lastLines(log.data, { tail, search }).map(({ at, stream, text }) => ({ at, stream, text }));
    },
  },
  get_site_metrics: {
    run: async (ctx, { site, minutes }) =>
      window((await call(ctx, "getSiteMetrics", { id: await siteId(ctx, site) })).data, minutes),
  },
  list_container_events: {
    async run(ctx, { site, db }) {
      if ((site === undefined) === (db === undefined)) throw invalid("site", "either site or db");
      const events =
        site !== undefined
          ? await call(ctx, "getSiteEvents", { id: await siteId(ctx, site) })
          : await call(ctx, "getDatabaseEvents", { id: await databaseId(ctx, db ?? "") });
      return events.data.slice(-50);
    },
  },
  list_unhealthy_resources: { run: (ctx) => call(ctx, "listUnhealthy", {}) },
};
