import { sql } from "drizzle-orm";
import type { FailingCheck, FromAgent } from "../../../protocol/agent/messages.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { NotificationKind } from "../../../protocol/states.ts";
import type { Ctx } from "../../ctx.ts";
import { tableOf, termedOf } from "../../db/resource.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

type Told<Type> = Omit<Extract<FromAgent, { type: Type }>, "type">;
type Notice = { kind: NotificationKind; id: Id<"site"> | Id<"database">; occasion: string; detail: string };

/** A notice for an account that wants to know, once per occasion. Reports about what other hosts have have no effect. */
async function record(ctx: Ctx, hostId: Id<"host">, { kind, id, occasion, detail }: Notice): Promise<void> {
  const table = tableOf(termedOf(id) ?? "sites");
  await ctx.statement(sql`
    INSERT INTO notices (account_id, kind, occasion, resource_id, detail, created_at)
    SELECT r.account_id, ${kind}, ${occasion}, r.id, ${detail}, ${ctx.now().getTime()} FROM ${table} r
    WHERE r.id = ${id} AND r.host_id = ${hostId}
      AND EXISTS (SELECT 1 FROM notification_channels c, json_each(c.kinds) k
        WHERE c.account_id = r.account_id AND c.enabled AND k.value = ${kind})
    ON CONFLICT DO NOTHING`);
}

/** Once an hour at most. */
export const recordUnhealthy = (
  ctx: Ctx,
  hostId: Id<"host">,
  { siteId: id, detail }: FailingCheck,
): Promise<void> => {
  const hour = Math.floor(ctx.now().getTime() / hourMs);
  return record(ctx, hostId, { kind: "unhealthy", id, occasion: `unhealthy:${id}:${hour}`, detail });
};

/** Once a day at most, as the trigger that tells of a database's disk. */
export const recordLimitNear = (
  ctx: Ctx,
  hostId: Id<"host">,
  { resourceId: id, of, detail }: Told<"limitNear">,
): Promise<void> => {
  const day = Math.floor(ctx.now().getTime() / dayMs);
  return record(ctx, hostId, { kind: "limit_near", id, occasion: `${of}:${id}:${day}`, detail });
};
