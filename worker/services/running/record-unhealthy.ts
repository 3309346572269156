import { sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";

const hourMs = 3_600_000;

/** A notice for an account that wants to know, once an hour at most. Reports about other hosts' sites have no effect. */
export async function recordUnhealthy(
  ctx: Ctx,
  hostId: Id<"host">,
  { siteId, detail }: { siteId: Id<"site">; detail: string },
): Promise<void> {
  const now = ctx.now().getTime();
  const occasion = `unhealthy:${siteId}:${Math.floor(now / hourMs)}`;
  await ctx.statement(sql`
    INSERT INTO notices (account_id, kind, occasion, resource_id, detail, created_at)
    SELECT s.account_id, 'unhealthy', ${occasion}, s.id, ${detail}, ${now} FROM sites s
    WHERE s.id = ${siteId} AND s.host_id = ${hostId}
      AND EXISTS (SELECT 1 FROM notification_channels c, json_each(c.kinds) k
        WHERE c.account_id = s.account_id AND c.enabled AND k.value = 'unhealthy')
    ON CONFLICT DO NOTHING`);
}
