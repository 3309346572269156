import { Hono } from "hono";
import { operations } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { body, query } from "../middleware/body.ts";
import { createBackup } from "../services/backups/create.ts";
import { listBackupsOf } from "../services/backups/list.ts";
import { restoreDatabase } from "../services/backups/restore.ts";
import { scheduleBackups } from "../services/backups/schedule.ts";
import { actOnDatabase } from "../services/databases/act.ts";
import { createDatabase } from "../services/databases/create.ts";
import { databaseCredentials } from "../services/databases/credentials.ts";
import { getDatabase } from "../services/databases/get.ts";
import { linkDatabase } from "../services/databases/link.ts";
import { listDatabases } from "../services/databases/list.ts";
import { removeDatabase } from "../services/databases/remove.ts";
import { rotatePassword } from "../services/databases/rotate.ts";
import { unlinkDatabase } from "../services/databases/unlink.ts";

export const databases = new Hono<AppEnv>()
  .get("/", query(operations.listDatabases.query), async (c) =>
    c.json(await listDatabases(c.var.ctx, c.req.valid("query"))),
  )
  .post("/", body(operations.createDatabase.body), async (c) => {
    const created = await createDatabase(c.var.ctx, c.req.valid("json"));
    c.header("Location", `/api/v1/databases/${created.databaseId}`);
    return c.json(created, 201);
  })
  .get("/:id", async (c) => c.json(await getDatabase(c.var.ctx, c.req.param("id"))))
  .patch("/:id", body(operations.patchDatabase.body), async (c) => {
    const patch = c.req.valid("json");
    return "action" in patch
      ? c.json(await actOnDatabase(c.var.ctx, c.req.param("id"), patch), 202)
      : c.json(await scheduleBackups(c.var.ctx, c.req.param("id"), patch.backups));
  })
  .delete("/:id", async (c) => c.json(await removeDatabase(c.var.ctx, c.req.param("id")), 202))
  .get("/:id/credentials", async (c) => {
    c.header("Cache-Control", "no-store");
    return c.json(await databaseCredentials(c.var.ctx, c.req.param("id")));
  })
  .post("/:id/links", body(operations.linkDatabase.body), async (c) =>
    c.json(await linkDatabase(c.var.ctx, c.req.param("id"), c.req.valid("json")), 201),
  )
  .delete("/:id/links", query(operations.unlinkDatabase.query), async (c) =>
    c.json(await unlinkDatabase(c.var.ctx, c.req.param("id"), c.req.valid("query"))),
  )
  .post("/:id/rotate", async (c) => c.json(await rotatePassword(c.var.ctx, c.req.param("id")), 202))
  .get("/:id/backups", query(operations.listBackups.query), async (c) =>
    c.json(await listBackupsOf(c.var.ctx, c.req.param("id"), c.req.valid("query"))),
  )
  .post("/:id/backups", async (c) => c.json(await createBackup(c.var.ctx, c.req.param("id")), 202))
  .post("/:id/restore", body(operations.restoreDatabase.body), async (c) =>
    c.json(await restoreDatabase(c.var.ctx, c.req.param("id"), c.req.valid("json")), 202),
  );
