import { Hono } from "hono";
import type { AppEnv } from "../app-env.ts";
import { verifyLedger } from "../services/ledger/verify.ts";

/** Operators only. */
export const ledger = new Hono<AppEnv>().get("/verify", async (c) => c.json(await verifyLedger(c.var.ctx)));
