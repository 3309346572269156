import { Hono } from "hono";
import { html } from "hono/html";
import type { AppEnv } from "../app-env.ts";
import { configOf } from "../config.ts";
import { limitAddress } from "../middleware/limit.ts";

/** Generated on first use: no other route needs the generator. */
const documentOf = async (env: AppEnv["Bindings"]) =>
  (await import("../openapi.ts")).openApiDocument(configOf(env));

/** The API reference for people. */
export const reference = new Hono<AppEnv>().get("/docs", limitAddress, async (c) => {
  const { ReferencePage } = await import("../pages/reference.tsx");
  return c.html(html`<!doctype html>${<ReferencePage document={await documentOf(c.env)} />}`);
});
