import { Hono } from "hono";
import { operations } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { body, query } from "../middleware/body.ts";
import { changeCreditPackage, createCreditPackage } from "../services/credits/change-packages.ts";
import { getCredits } from "../services/credits/get.ts";
import { grantCredits } from "../services/credits/grant.ts";
import { listAllCreditPackages } from "../services/credits/list-packages.ts";
import { purchaseCredits } from "../services/credits/purchase.ts";

/** The caller's credits; packages and grants are the operator's. */
export const credits = new Hono<AppEnv>()
  .get("/", async (c) => c.json(await getCredits(c.var.ctx)))
  .post("/purchase", body(operations.purchaseCredits.body), async (c) =>
    c.json(await purchaseCredits(c.var.ctx, c.req.valid("json")), 201),
  )
  .post("/grants", body(operations.grantCredits.body), async (c) =>
    c.json(await grantCredits(c.var.ctx, c.req.valid("json")), 201),
  )
  .get("/packages/all", query(operations.listAllCreditPackages.query), async (c) =>
    c.json(await listAllCreditPackages(c.var.ctx, c.req.valid("query"))),
  )
  .post("/packages", body(operations.createCreditPackage.body), async (c) =>
    c.json(await createCreditPackage(c.var.ctx, c.req.valid("json")), 201),
  )
  .patch("/packages/:id", body(operations.patchCreditPackage.body), async (c) =>
    c.json(await changeCreditPackage(c.var.ctx, c.req.param("id"), c.req.valid("json"))),
  );
