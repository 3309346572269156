import { Hono } from "hono";
import { operations } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { body, query } from "../middleware/body.ts";
import { changePack, createPack } from "../services/packs/change.ts";
import { listAllPacks } from "../services/packs/list.ts";

/** Operators only; what can be bought is listed without credentials. */
export const packs = new Hono<AppEnv>()
  .get("/all", query(operations.listAllPacks.query), async (c) =>
    c.json(await listAllPacks(c.var.ctx, c.req.valid("query"))),
  )
  .post("/", body(operations.createPack.body), async (c) =>
    c.json(await createPack(c.var.ctx, c.req.valid("json")), 201),
  )
  .patch("/:id", body(operations.patchPack.body), async (c) =>
    c.json(await changePack(c.var.ctx, c.req.param("id"), c.req.valid("json"))),
  );
