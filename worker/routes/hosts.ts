import { Hono } from "hono";
import { operations } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { body, query } from "../middleware/body.ts";
import { changeHost } from "../services/hosts/change.ts";
import { createHost } from "../services/hosts/create.ts";
import { listHosts } from "../services/hosts/list.ts";
import { listSetAside } from "../services/hosts/list-set-aside.ts";
import { removeSetAside } from "../services/hosts/remove-set-aside.ts";
import { removeHost } from "../services/hosts/remove.ts";

/** Operators only. */
export const hosts = new Hono<AppEnv>()
  .get("/", query(operations.listHosts.query), async (c) =>
    c.json(await listHosts(c.var.ctx, c.req.valid("query"))),
  )
  .post("/", body(operations.createHost.body), async (c) => {
    c.set("shownOnce", ["token", "installCommand"]);
    return c.json(await createHost(c.var.ctx, c.req.valid("json")), 201);
  })
  .patch("/:id", body(operations.patchHost.body), async (c) =>
    c.json(await changeHost(c.var.ctx, c.req.param("id"), c.req.valid("json"))),
  )
  .get("/:id/set-aside", async (c) => c.json(await listSetAside(c.var.ctx, c.req.param("id"))))
  .delete("/:id/set-aside/:keptId", async (c) =>
    c.json(await removeSetAside(c.var.ctx, c.req.param("id"), c.req.param("keptId"))),
  )
  .delete("/:id", query(operations.deleteHost.query), async (c) => {
    const { force, loseVolumes } = c.req.valid("query");
    const how = { force: force === "1", loseVolumes: loseVolumes === "1" };
    return c.json(await removeHost(c.var.ctx, c.req.param("id"), how));
  });
