import { Hono } from "hono";
import { operations } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { body } from "../middleware/body.ts";
import { notBuilt } from "../middleware/not-built.ts";

const refuse = () => notBuilt("Credits");

/** Their service verbs come with the ledger. */
export const credits = new Hono<AppEnv>()
  .get("/", refuse)
  .post("/purchase", body(operations.purchaseCredits.body), refuse);

/** Asked without credentials. */
export const listCreditPackages = refuse;
