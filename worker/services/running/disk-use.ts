import { getTableColumns, sql } from "drizzle-orm";
import { maxDiskAsked, type Answer } from "../../../protocol/agent/running.ts";
import type { DiskUse } from "../../../protocol/api/disk.ts";
import { isId, type Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { databases, sites } from "../../db/schema.ts";

type Measured = Extract<Answer, { kind: "disk" }>["found"][number];
type Kept = {
  id: Id<"site" | "database">;
  name: string;
  hostId: Id<"host"> | null;
  diskGb: number;
};

export const selectSitesOnDisk = (ctx: Ctx) =>
  ctx.db
    .select({
      ...getTableColumns(sites),
      diskGb: sql<number>`(SELECT disk_gb FROM packs WHERE id = sites.pack_id)`.as("disk_gb"),
    })
    .from(sites);
export const selectDatabasesOnDisk = (ctx: Ctx) =>
  ctx.db
    .select({
      ...getTableColumns(databases),
      diskGb: sql<number>`(SELECT disk_gb FROM packs WHERE id = databases.pack_id)`.as("disk_gb"),
    })
    .from(databases);

const hasNotRun = "It has not run yet.";

/** Measures all of these; a host that does not answer withholds its own only. @returns what each takes */
export async function measureDisk(ctx: Ctx, kept: readonly Kept[]): Promise<(one: Kept) => DiskUse> {
  const byHost = Map.groupBy(kept, ({ hostId }) => hostId);
  const measured = new Map<string, Measured>();
  const refusals = new Map<string, string>();
  await Promise.all(
    [...byHost].map(async ([hostId, all]) => {
      if (hostId === null) return;
      for (let from = 0; from < all.length; from += maxDiskAsked) {
        const ids = all.slice(from, from + maxDiskAsked).map(({ id }) => id);
        const answer = await ctx.questions.ask(hostId, { kind: "disk", ids });
        if (answer.kind === "disk")
          for (const one of answer.found) if (ids.includes(one.id)) measured.set(one.id, one);
        if (answer.kind === "refused") for (const id of ids) refusals.set(id, answer.error);
      }
    }),
  );
  return (one) => {
    const found = measured.get(one.id);
    return {
      kind: isId("site", one.id) ? "site" : "database",
      id: one.id,
      name: one.name,
      limitMb: one.diskGb * 1024,
      countedMb: found?.countedMb ?? null,
      writtenMb: found?.writtenMb ?? null,
      volumes: found?.volumes ?? [],
      images: found?.images ?? [],
      logMb: found?.logMb ?? null,
      buildCacheMb: found?.buildCacheMb ?? null,
      notMeasured: found
        ? null
        : one.hostId === null
          ? hasNotRun
          : (refusals.get(one.id) ?? "Its host has no data for it."),
    };
  };
}
