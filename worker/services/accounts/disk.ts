import { desc, eq } from "drizzle-orm";
import type { AccountDiskUse } from "../../../protocol/api/disk.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { databases, sites } from "../../db/schema.ts";
import { measureDisk, selectDatabasesOnDisk, selectSitesOnDisk } from "../running/disk-use.ts";

/** Of each kind. */
const maxShown = 50;

/** What the account's newest sites and databases take of their hosts' disks, the largest first. */
export async function accountDisk(ctx: Ctx): Promise<AccountDiskUse> {
  const accountId = accountOf(ctx);
  const found = await batch(ctx, {
    sites: selectSitesOnDisk(ctx)
      .where(eq(sites.accountId, accountId))
      .orderBy(desc(sites.id))
      .limit(maxShown + 1),
    databases: selectDatabasesOnDisk(ctx)
      .where(eq(databases.accountId, accountId))
      .orderBy(desc(databases.id))
      .limit(maxShown + 1),
  });
  const shown = [...found.sites.slice(0, maxShown), ...found.databases.slice(0, maxShown)];
  const useOf = await measureDisk(ctx, shown);
  return {
    data: shown.map(useOf).toSorted((a, b) => (b.countedMb ?? -1) - (a.countedMb ?? -1)),
    truncated: found.sites.length + found.databases.length > shown.length,
  };
}
