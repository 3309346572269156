import { Hono } from "hono";
import { operations } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { body, query } from "../middleware/body.ts";
import { createBackup } from "../services/backups/create.ts";
import { listBackupsOf } from "../services/backups/list.ts";
import { restoreDatabase } from "../services/backups/restore.ts";
import { scheduleBackups } from "../services/backups/schedule.ts";
import { actOnDatabase } from "../services/databases/act.ts";
import { databaseEventsOf } from "../services/databases/events.ts";
import { followDatabaseLog } from "../services/databases/follow-log.ts";
import { databaseInsight } from "../services/databases/insight.ts";
import { databaseMetrics } from "../services/databases/metrics.ts";
import { queryDatabase } from "../services/databases/query.ts";
import { readDatabaseLog } from "../services/databases/read-log.ts";
import { databaseSchema } from "../services/databases/schema.ts";
import { createDatabase } from "../services/databases/create.ts";
import { databaseCredentials } from "../services/databases/credentials.ts";
import { exposeDatabase } from "../services/databases/expose.ts";
import { getDatabase } from "../services/databases/get.ts";
import { linkDatabase } from "../services/databases/link.ts";
import { listDatabases } from "../services/databases/list.ts";
import { removeDatabase } from "../services/databases/remove.ts";
import { rotatePassword } from "../services/databases/rotate.ts";
import { changePackOfDatabase } from "../services/terms/change-pack.ts";
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
    const [id, patch] = [c.req.param("id"), c.req.valid("json")];
    if ("packId" in patch) return c.json(await changePackOfDatabase(c.var.ctx, id, patch));
    if ("backups" in patch) return c.json(await scheduleBackups(c.var.ctx, id, patch.backups));
    if ("publicAccess" in patch) return c.json(await exposeDatabase(c.var.ctx, id, patch.publicAccess));
    return c.json(await actOnDatabase(c.var.ctx, id, patch), 202);
  })
  .delete("/:id", async (c) => c.json(await removeDatabase(c.var.ctx, c.req.param("id")), 202))
  .get("/:id/credentials", async (c) => {
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
  )
  .get("/:id/insight", async (c) => {
    return c.json(await databaseInsight(c.var.ctx, c.req.param("id")));
  })
  .get("/:id/schema", async (c) => c.json(await databaseSchema(c.var.ctx, c.req.param("id"))))
  .post("/:id/query", body(operations.queryDatabase.body), async (c) => {
    const asked = c.req.valid("json");
    c.set("isRead", !asked.write);
    return c.json(await queryDatabase(c.var.ctx, c.req.param("id"), asked));
  })
  .get("/:id/logs", query(operations.getDatabaseLogs.query), async (c) => {
    const [id, asked] = [c.req.param("id"), c.req.valid("query")];
    if (asked.follow === "0") return c.json(await readDatabaseLog(c.var.ctx, id, asked));
    const events = await followDatabaseLog(c.var.ctx, id, asked, c.req.header("Last-Event-ID"));
    return c.body(events, 200, { "Content-Type": "text/event-stream" });
  })
  .get("/:id/metrics", async (c) => c.json(await databaseMetrics(c.var.ctx, c.req.param("id"))))
  .get("/:id/events", async (c) => c.json(await databaseEventsOf(c.var.ctx, c.req.param("id"))));
