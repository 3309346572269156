import { Hono } from "hono";
import type { AppEnv } from "../app-env.ts";
import { configOf } from "../config.ts";
import { limitAddress } from "../middleware/limit.ts";
import { show } from "./show.ts";
import { noteViewer } from "./viewer.ts";

/** Generated on first use: no other route needs the generator. */
const documentOf = async (env: AppEnv["Bindings"]) =>
  (await import("../openapi.ts")).openApiDocument(configOf(env));

/** The API reference for people. */
export const reference = new Hono<AppEnv>().get("/docs", limitAddress, noteViewer, async (c) => {
  const { ReferencePage } = await import("../pages/reference.tsx");
  const { SITE_URL } = configOf(c.env);
  const site = c.get("viewer")?.terms.find(({ kind }) => kind === "site");
  const reader = { siteUrl: SITE_URL, baseUrl: `${SITE_URL}/api/v1`, siteId: site?.id ?? null };
  return show(c, <ReferencePage document={await documentOf(c.env)} reader={reader} />);
});
