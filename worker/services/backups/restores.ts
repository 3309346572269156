import { and, desc, eq, inArray } from "drizzle-orm";
import type { SiteEvent } from "../../../protocol/api/running.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { jobs } from "../../db/schema.ts";

const shownMax = 20;

/** The query for the latest finished restores of a database. */
export const endedRestores = (ctx: Ctx, databaseId: Id<"database">) =>
  ctx.db
    .select({ backupId: jobs.backupId, error: jobs.error, finishedAt: jobs.finishedAt })
    .from(jobs)
    .where(
      and(
        eq(jobs.databaseId, databaseId),
        inArray(jobs.status, ["DONE", "FAILED"]),
        eq(jobs.kind, "database.restore"),
      ),
    )
    .orderBy(desc(jobs.seq))
    .limit(shownMax);

type Ended = Awaited<ReturnType<typeof endedRestores>>[number];

/** Added from the record because the host stores container events only. */
export const restoreEvent = ({ backupId, error, finishedAt }: Ended): SiteEvent => ({
  at: (finishedAt ?? new Date(0)).toISOString(),
  ...(error === null
    ? { kind: "restored", detail: `The data of backup ${backupId} was restored.` }
    : { kind: "restore_failed", detail: `Restoring backup ${backupId} failed: ${error}`.slice(0, 2000) }),
});
