import { Hono } from "hono";
import { operations } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { body, query } from "../middleware/body.ts";
import { listCommands } from "../services/commands/list.ts";
import { runCommand } from "../services/commands/run.ts";
import { listDeployments } from "../services/deployments/list.ts";
import { changeDomain } from "../services/domains/change.ts";
import { siteEventsOf } from "../services/running/events.ts";
import { followSiteLog } from "../services/running/follow-log.ts";
import { siteMetrics } from "../services/running/metrics.ts";
import { readSiteLog } from "../services/running/read-log.ts";
import { createSchedule } from "../services/schedules/create.ts";
import { listSchedules } from "../services/schedules/list.ts";
import { actOnSite } from "../services/sites/act.ts";
import { createSite } from "../services/sites/create.ts";
import { getSite } from "../services/sites/get.ts";
import { listSites } from "../services/sites/list.ts";
import { removeSite } from "../services/sites/remove.ts";
import { rollbackSite } from "../services/sites/rollback.ts";
import { setSiteEnv } from "../services/sites/set-env.ts";
import { setSiteSettings } from "../services/sites/set-settings.ts";
import { changePackOfSite } from "../services/terms/change-pack.ts";
import { listVolumes } from "../services/volumes/list.ts";
import { removeVolume } from "../services/volumes/remove.ts";
import { getWebhookAddress, rotateWebhookAddress } from "../services/webhooks/address.ts";

export const sites = new Hono<AppEnv>()
  .get("/", query(operations.listSites.query), async (c) =>
    c.json(await listSites(c.var.ctx, c.req.valid("query"))),
  )
  .post("/", body(operations.createSite.body), async (c) => {
    const created = await createSite(c.var.ctx, c.req.valid("json"));
    c.header("Location", `/api/v1/sites/${created.siteId}`);
    return c.json(created, 201);
  })
  .get("/:id", async (c) => c.json(await getSite(c.var.ctx, c.req.param("id"))))
  .patch("/:id", body(operations.patchSite.body), async (c) => {
    const [id, change] = [c.req.param("id"), c.req.valid("json")];
    if ("action" in change) return c.json(await actOnSite(c.var.ctx, id, change), 202);
    if ("settings" in change) return c.json(await setSiteSettings(c.var.ctx, id, change.settings));
    if ("domain" in change) return c.json(await changeDomain(c.var.ctx, id, change.domain));
    if ("packId" in change) return c.json(await changePackOfSite(c.var.ctx, id, change));
    return c.json(await setSiteEnv(c.var.ctx, id, change.envVariables));
  })
  .delete("/:id", async (c) => c.json(await removeSite(c.var.ctx, c.req.param("id")), 202))
  .get("/:id/deployments", query(operations.listDeployments.query), async (c) =>
    c.json(await listDeployments(c.var.ctx, c.req.param("id"), c.req.valid("query"))),
  )
  .post("/:id/rollback", body(operations.rollbackSite.body), async (c) => {
    const { deploymentId } = c.req.valid("json");
    return c.json(await rollbackSite(c.var.ctx, c.req.param("id"), deploymentId), 202);
  })
  .get("/:id/commands", query(operations.listCommands.query), async (c) =>
    c.json(await listCommands(c.var.ctx, c.req.param("id"), c.req.valid("query"))),
  )
  .post("/:id/commands", body(operations.runCommand.body), async (c) => {
    const queued = await runCommand(c.var.ctx, c.req.param("id"), c.req.valid("json"));
    c.header("Location", `/api/v1/commands/${queued.id}`);
    return c.json(queued, 202);
  })
  .get("/:id/schedules", query(operations.listSchedules.query), async (c) =>
    c.json(await listSchedules(c.var.ctx, c.req.param("id"), c.req.valid("query"))),
  )
  .post("/:id/schedules", body(operations.createSchedule.body), async (c) =>
    c.json(await createSchedule(c.var.ctx, c.req.param("id"), c.req.valid("json")), 201),
  )
  .get("/:id/logs", query(operations.getSiteLogs.query), async (c) => {
    const [id, asked] = [c.req.param("id"), c.req.valid("query")];
    if (asked.follow === "0") return c.json(await readSiteLog(c.var.ctx, id, asked));
    const events = await followSiteLog(c.var.ctx, id, asked, c.req.header("Last-Event-ID"));
    return c.body(events, 200, { "Content-Type": "text/event-stream" });
  })
  .get("/:id/metrics", async (c) => c.json(await siteMetrics(c.var.ctx, c.req.param("id"))))
  .get("/:id/events", async (c) => c.json(await siteEventsOf(c.var.ctx, c.req.param("id"))))
  .get("/:id/volumes", async (c) => c.json(await listVolumes(c.var.ctx, c.req.param("id"))))
  .delete("/:id/volumes/:name", async (c) =>
    c.json(await removeVolume(c.var.ctx, c.req.param("id"), c.req.param("name"))),
  )
  .get("/:id/webhook", async (c) => c.json(await getWebhookAddress(c.var.ctx, c.req.param("id"))))
  .post("/:id/webhook/rotate", async (c) => c.json(await rotateWebhookAddress(c.var.ctx, c.req.param("id"))));
