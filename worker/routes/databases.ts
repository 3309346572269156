import { Hono } from "hono";
import { operations } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { body, query } from "../middleware/body.ts";
import { notBuilt } from "../middleware/not-built.ts";

const refuse = () => notBuilt("Databases");

/** Their service verbs come with the databases themselves. */
export const databases = new Hono<AppEnv>()
  .get("/", query(operations.listDatabases.query), refuse)
  .post("/", body(operations.createDatabase.body), refuse)
  .get("/:id", refuse)
  .patch("/:id", body(operations.patchDatabase.body), refuse)
  .delete("/:id", refuse)
  .get("/:id/credentials", refuse)
  .get("/:id/backups", query(operations.listBackups.query), refuse)
  .post("/:id/backups", refuse)
  .post("/:id/restore", body(operations.restoreDatabase.body), refuse);
