import type { ById } from "../../../protocol/api/common.ts";
import { sql } from "drizzle-orm";
import { maxHeld, type DatabaseVolumes, type Kept } from "../../../protocol/agent/inventory.ts";
import type { Question } from "../../../protocol/agent/running.ts";
import type { SetAsideList } from "../../../protocol/api/hosts.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { openJob } from "../../db/job-conditions.ts";
import { conflict } from "../../domain/app-error.ts";
import { replacedVolumes } from "../../jobs/databases/replaced-volumes.ts";
import { databases } from "../../db/schema.ts";
import { idIn } from "../owned.ts";
import { askThis } from "../running/ask-host.ts";
import { hostNamed } from "./named.ts";

/** Asks the host itself what it has set aside, because a restored database may not know. */
export async function listSetAside(ctx: Ctx, { id: hostId }: ById): Promise<SetAsideList> {
  const host = idIn("host", hostId);
  await hostNamed(ctx, host);
  const held = await heldBy(ctx, host);
  const unnamed = await unnamedOf(ctx, host, held.ids);
  const spare = await spareVolumesOf(ctx, host, held.databases ?? []);
  const data: Kept[] = [];
  const add = async (question: Question) => {
    const answer = await ctx.questions.ask(host, question);
    if (answer.kind === "refused") throw conflict(answer.error);
    if (answer.kind === "kept") data.push(...answer.kept);
  };
  for (let at = 0; at < unnamed.length; at += maxHeld)
    await add({ kind: "kept", ids: unnamed.slice(at, at + maxHeld) });
  if (spare.length > 0) await add({ kind: "keptVolumes", databases: spare });
  return { data };
}

export const heldBy = (ctx: Ctx, host: Id<"host">) => askThis<"held">(ctx, host, { kind: "held" });

/** Those that no record assigns to this host. */
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

/** Volumes of databases assigned to this host that are neither in use nor recorded as replaced. */
export async function spareVolumesOf(
  ctx: Ctx,
  hostId: Id<"host">,
  held: readonly DatabaseVolumes[],
): Promise<DatabaseVolumes[]> {
  if (held.length === 0) return [];
  const ids = JSON.stringify(held.map(({ id }) => id));
  const rows = await ctx.db
    .select({
      id: databases.id,
      volume: databases.volume,
      replacedVolumes,
      restoring: sql<
        string | null
      >`(SELECT j.id FROM jobs j WHERE j.database_id = databases.id AND j.kind = 'database.restore'
        AND j.${openJob} LIMIT 1)`.as("restoring"),
    })
    .from(databases)
    .where(
      sql`databases.id IN (SELECT value FROM json_each(${ids})) AND host_id = ${hostId} AND databases.status <> 'PENDING'`,
    );
  return held.flatMap(({ id, volumes }) => {
    const row = rows.find((one) => one.id === id);
    if (!row || !volumes.includes(row.volume)) return [];
    const known = [row.volume, row.restoring, ...row.replacedVolumes];
    const spare = volumes.filter((volume) => !known.includes(volume));
    return spare.length > 0 ? [{ id, volumes: spare }] : [];
  });
}
