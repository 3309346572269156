import { and, eq, notInArray, sql } from "drizzle-orm";
import { startingKinds } from "../../db/job-conditions.ts";
import { sites } from "../../db/schema.ts";
import { payUrl } from "../../domain/pay-url.ts";
import { siteEvents } from "../../domain/site-events.ts";
import { ending, siteIdOf, siteOf, type Kind } from "./kind.ts";
import { hostnamesOf, readAt } from "./run-spec.ts";
import { moveSite, setError } from "./site-status.ts";

const notStopped = "Not stopped: ";

export const siteStop: Kind<"site.stop"> = {
  args(ctx, material) {
    const site = siteOf(material);
    return {
      siteId: site.id,
      hostnames: hostnamesOf(ctx, site, material.domains),
      ...readAt(material.job),
      ...(site.status === "SUSPENDED" && {
        notice: {
          reason: "suspended",
          payUrl: material.renewal ? payUrl(ctx.config.SITE_URL, material.renewal.token) : null,
        },
      }),
    };
  },

  succeeded(ctx, { job, ended }) {
    const siteId = siteIdOf(job);
    return ending({
      serving: ctx.db
        .update(sites)
        .set({ serving: false })
        .where(and(eq(sites.id, siteId), ended)),
      // A suspended site keeps its earlier error, unless that says that it was not stopped.
      error: setError(
        ctx,
        siteId,
        null,
        sql`${ended} AND (error LIKE ${`${notStopped}%`}
          OR (SELECT status FROM sites WHERE id = ${siteId}) IN ('RUNNING', 'DEPLOYING'))`,
      ),
      // If the start queued behind this stop has been cancelled, the site is to stay stopped.
      wanted: ctx.statement(sql`
        UPDATE sites SET wanted = 'STOPPED' WHERE id = ${siteId} AND status IN ${siteEvents.stopped.from} AND ${ended}
          AND NOT EXISTS (SELECT 1 FROM jobs WHERE lane = ${siteId} AND status = 'QUEUED' AND kind IN ${startingKinds})`),
      stopped: moveSite(ctx, siteId, "stopped", sql`${ended} AND ${sites.wanted} = 'STOPPED'`, false),
    });
  },

  // The containers may still run: the record reflects that, and the owner can stop the site again. A stopped site, whose
  // stop is repeated on its new host, stays stopped.
  failed: (ctx, { job, ended }, { error }) =>
    ending({
      wanted: ctx.db
        .update(sites)
        .set({ wanted: "RUNNING" })
        .where(and(eq(sites.id, siteIdOf(job)), notInArray(sites.status, ["SUSPENDED", "STOPPED"]), ended)),
      error: setError(ctx, siteIdOf(job), `${notStopped}${error}`, ended),
    }),
};
