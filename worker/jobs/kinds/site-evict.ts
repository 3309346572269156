import { eq, sql } from "drizzle-orm";
import { sites } from "../../db/schema.ts";
import { afterEviction } from "../hosts/evict-left.ts";
import { ending, siteIdOf, siteOf, type Kind } from "./kind.ts";

export const siteEvict: Kind<"site.evict"> = {
  args(_ctx, material) {
    const { id, accountId } = siteOf(material);
    return { siteId: id, accountId };
  },
  succeeded: (ctx, { job, ended }) =>
    ending(
      {
        left:
          job.hostId === null
            ? undefined
            : ctx.statement(sql`
                UPDATE sites SET ${afterEviction(job.hostId)}
                WHERE id = ${siteIdOf(job)} AND leaving_host_id = ${job.hostId} AND ${ended}`),
        now: ctx.db
          .select({ hostId: sites.hostId })
          .from(sites)
          .where(eq(sites.id, siteIdOf(job))),
      },
      ({ now: [site] }) => {
        for (const hostId of [job.hostId, site?.hostId]) if (hostId) ctx.hosts.tellPeers(hostId);
      },
    ),
  failed: () => ending({}),
};
