import { Hono } from "hono";
import { BackupDownloadQuery } from "../../protocol/api/backups.ts";
import { entryOperations } from "../../protocol/api/entry-operations.ts";
import type { AppEnv } from "../app-env.ts";
import { query } from "../middleware/body.ts";
import { actAs } from "../middleware/context.ts";
import { knownQuery } from "../middleware/known-query.ts";
import { limitAddress } from "../middleware/limit.ts";
import { downloadBackup } from "../services/backups/download.ts";

/** The signed URL is the credential. */
export const backupFiles = new Hono<AppEnv>().get(
  "/:id/download",
  limitAddress,
  knownQuery(entryOperations.downloadBackup),
  actAs("link"),
  query(BackupDownloadQuery),
  async (c) => downloadBackup(c.var.ctx, c.req.param("id"), c.req.valid("query"), c.req.header("Range")),
);
