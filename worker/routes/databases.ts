import { Hono, type Context } from "hono";
import { operations } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { body, query } from "../middleware/body.ts";
import { notBuilt } from "../middleware/not-built.ts";
import { actOnDatabase } from "../services/databases/act.ts";
import { createDatabase } from "../services/databases/create.ts";
import { databaseCredentials } from "../services/databases/credentials.ts";
import { getDatabase } from "../services/databases/get.ts";
import { linkDatabase } from "../services/databases/link.ts";
import { listDatabases } from "../services/databases/list.ts";
import { removeDatabase } from "../services/databases/remove.ts";
import { rotatePassword } from "../services/databases/rotate.ts";
import { changePackOfDatabase } from "../services/terms/change-pack.ts";
import { unlinkDatabase } from "../services/databases/unlink.ts";

/** After the owner's checks. */
const refuse = async (c: Context<AppEnv>) => {
  await getDatabase(c.var.ctx, c.req.param("id") ?? "");
  return notBuilt("Backups of databases");
};

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
    const [id, change] = [c.req.param("id"), c.req.valid("json")];
    if ("packId" in change) return c.json(await changePackOfDatabase(c.var.ctx, id, change));
    return c.json(await actOnDatabase(c.var.ctx, id, change), 202);
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
  .get("/:id/backups", query(operations.listBackups.query), refuse)
  .post("/:id/backups", refuse)
  .post("/:id/restore", body(operations.restoreDatabase.body), refuse);
