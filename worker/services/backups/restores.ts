import { and, desc, eq, inArray } from "drizzle-orm";
import type { SiteEvent } from "../../../protocol/api/running.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { jobs } from "../../db/schema.ts";

const shownMax = 20;

/** The query of the last restores into a database that ended. */
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

/** Its host keeps only what happened to containers. */
export const restoreEvent = ({ backupId, error, finishedAt }: Ended): SiteEvent => ({
  at: (finishedAt ?? new Date(0)).toISOString(),
  ...(error === null
    ? { kind: "restored", detail: `Its data is that of backup ${backupId} now.` }
    : { kind: "restore_failed", detail: `Backup ${backupId} was not restored: ${error}`.slice(0, 2000) }),
});
