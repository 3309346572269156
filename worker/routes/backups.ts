import { Hono } from "hono";
import { BackupDownloadQuery } from "../../protocol/api/backups.ts";
import { operations } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { query } from "../middleware/body.ts";
import { actAs } from "../middleware/context.ts";
import { limitAddress } from "../middleware/limit.ts";
import { downloadBackup } from "../services/backups/download.ts";
import { listFailing } from "../services/backups/list-failing.ts";
import { linkBackup } from "../services/backups/link.ts";
import { listBackups } from "../services/backups/list.ts";
import { backupOwnedBy } from "../services/backups/owned.ts";
import { removeBackup } from "../services/backups/remove.ts";
import { verifyBackup } from "../services/backups/verify.ts";
import { backupView } from "../services/backups/view.ts";

export const backups = new Hono<AppEnv>()
  .get("/", query(operations.listAllBackups.query), async (c) =>
    c.json(await listBackups(c.var.ctx, c.req.valid("query"))),
  )
  .get("/failing", query(operations.listFailingBackups.query), async (c) =>
    c.json(await listFailing(c.var.ctx, c.req.valid("query"))),
  )
  .post("/:id/verify", async (c) => c.json(await verifyBackup(c.var.ctx, c.req.param("id")), 202))
  .get("/:id", async (c) => c.json(backupView(await backupOwnedBy(c.var.ctx, c.req.param("id")))))
  .delete("/:id", async (c) => c.json(await removeBackup(c.var.ctx, c.req.param("id")), 202))
  .post("/:id/link", async (c) => c.json(await linkBackup(c.var.ctx, c.req.param("id"))));

/** The signed address is the credential. */
export const backupFiles = new Hono<AppEnv>().get(
  "/:id/download",
  limitAddress,
  actAs("link"),
  query(BackupDownloadQuery),
  async (c) => downloadBackup(c.var.ctx, c.req.param("id"), c.req.valid("query"), c.req.header("Range")),
);
