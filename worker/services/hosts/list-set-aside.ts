import { sql } from "drizzle-orm";
import { maxHeld, type Kept } from "../../../protocol/agent/inventory.ts";
import type { SetAsideList } from "../../../protocol/api/hosts.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { conflict } from "../../domain/app-error.ts";
import { hostIdOf, hostNamed } from "./named.ts";
import { requireOperator } from "../require-operator.ts";

/** The host itself says what it keeps, as a record that was put back has forgotten that. */
export async function listSetAside(ctx: Ctx, hostId: string): Promise<SetAsideList> {
  requireOperator(ctx);
  const { id } = await hostNamed(ctx, hostIdOf(hostId));
  const host = id as Id<"host">;
  const held = await ctx.questions.ask(host, { kind: "held" });
  if (held.kind === "refused") throw conflict(held.error);
  if (held.kind !== "held") throw new Error(`A host answered ${held.kind} to held`);
  const unnamed = await unnamedOf(ctx, host, held.ids);
  const data: Kept[] = [];
  for (let at = 0; at < unnamed.length; at += maxHeld) {
    const answer = await ctx.questions.ask(host, { kind: "kept", ids: unnamed.slice(at, at + maxHeld) });
    if (answer.kind === "refused") throw conflict(answer.error);
    if (answer.kind === "kept") data.push(...answer.kept);
  }
  return { data };
}

/** Those of them that no record puts on this host. */
export async function unnamedOf<T extends Id<"site" | "database">>(
  ctx: Ctx,
  hostId: Id<"host">,
  ids: readonly T[],
): Promise<T[]> {
  const rows = await ctx.db.all<{ id: T }>(sql`
    SELECT value AS id FROM json_each(${JSON.stringify(ids)}) one
    WHERE NOT EXISTS (SELECT 1 FROM sites s WHERE s.id = one.value AND s.status <> 'PENDING'
        AND ${hostId} IN (s.host_id, s.move_host_id, s.leaving_host_id))
      AND NOT EXISTS (SELECT 1 FROM databases d WHERE d.id = one.value AND d.host_id = ${hostId} AND d.status <> 'PENDING')`);
  return rows.map(({ id }) => id);
}
