import { eq, sql } from "drizzle-orm";
import { commands, deployments } from "../../db/schema.ts";
import { forgetSite } from "../sites/forget.ts";
import { ending, siteIdOf, siteOf, type Kind } from "./kind.ts";
import { hostnamesOf } from "./run-spec.ts";

export const siteDelete: Kind<"site.delete"> = {
  args(ctx, material) {
    const site = siteOf(material);
    return {
      siteId: site.id,
      accountId: site.accountId,
      hostnames: hostnamesOf(ctx, site, material.domains),
    };
  },

  succeeded(ctx, { job, ended }) {
    const siteId = siteIdOf(job);
    // The record stays until the host that the site moved away from has removed it as well: the reaper retries.
    const left = sql`(SELECT leaving_host_id FROM sites WHERE id = ${siteId}) IS NULL`;
    return ending(
      {
        deployments: ctx.db
          .select({ id: deployments.id })
          .from(deployments)
          .where(eq(deployments.siteId, siteId)),
        commands: ctx.db.select({ id: commands.id }).from(commands).where(eq(commands.siteId, siteId)),
        forgotten: forgetSite(ctx, siteId, sql`${ended} AND ${left}`),
      },
      (gone) => {
        for (const { id } of [...gone.deployments, ...gone.commands]) ctx.logs.remove(id);
        if (job.hostId) ctx.hosts.letGo(job.hostId, siteId);
      },
    );
  },

  failed: () => ending({}),
};
