import { call } from "../../api/call.ts";
import { listOwnPacks } from "../../services/packs/list.ts";
import type { Screen } from "../kit/screen.ts";
import { Usage, windowOf } from "../kit/usage.tsx";
import { siteFrame } from "./frame.tsx";
import { orWhy } from "./or-why.ts";

export const siteMetrics: Screen = {
  path: "/sites/:id/metrics",
  async show({ ctx, param, query }) {
    const id = param("id");
    const asked = query("range");
    const [site, metrics, events, packs, { data: deployments }] = await Promise.all([
      call(ctx, "getSite", { id }),
      orWhy(call(ctx, "getSiteMetrics", { id, window: windowOf(asked) })),
      orWhy(call(ctx, "getSiteEvents", { id })),
      listOwnPacks(ctx),
      call(ctx, "listDeployments", { id, limit: 100 }),
    ]);
    return siteFrame(
      site,
      "Metrics",
      <Usage
        path={`/sites/${site.id}/metrics`}
        asked={asked}
        now={ctx.now()}
        metrics={metrics.found}
        why={metrics.why}
        pack={packs.find(({ id }) => id === site.packId)}
        events={events.found?.data ?? []}
        deployments={deployments.flatMap(({ number, finishedAt, status }) =>
          finishedAt === null
            ? []
            : [
                {
                  atMs: Date.parse(finishedAt),
                  label: `#${number}`,
                  isServing: status === "LIVE" || status === "SUPERSEDED",
                },
              ],
        )}
      />,
      { islands: ["charts"] },
    );
  },
};
