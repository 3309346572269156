import { getCookie, setCookie } from "hono/cookie";
import { createMiddleware } from "hono/factory";
import type { Context } from "hono";
import * as z from "zod";
import { webNames } from "../adapters/assets.ts";
import { isSecure } from "../adapters/auth.ts";
import type { AppEnv } from "../app-env.ts";
import { configOf } from "../config.ts";
import { logError } from "../log-error.ts";
import { brandOf } from "../services/settings/read.ts";
import { contextFor } from "./context.ts";
import type { Flash } from "../page-state.ts";

const cookieName = "berth_said";
const Said = z.object({
  tone: z.enum(["good", "warn", "bad"]),
  text: z.string(),
  secret: z.string().optional(),
});

const cookieOptions = (c: Context<AppEnv>) =>
  ({ path: "/", httpOnly: true, sameSite: "Lax", secure: isSecure(configOf(c.env)) }) as const;

/**
 * Leaves a message for the next page of this browser, for a minute. It is sealed, so that nobody else writes one and a secret in it
 * is not kept readable.
 */
export function say(c: Context<AppEnv>, said: Flash): void {
  const sealed = contextFor(c, { type: "link" }).secrets.seal(JSON.stringify(said), "flash:1");
  setCookie(c, cookieName, sealed, { ...cookieOptions(c), maxAge: 60 });
}

/** Pages that need no database show the defaults while it does not answer. */
async function loadBrand(c: Context<AppEnv>): Promise<void> {
  try {
    c.set("brand", await brandOf(contextFor(c, { type: "link" })));
  } catch (error) {
    logError({ page: "brand" }, error);
  }
}

/** The brand, the names of the pages' files, and what the form before said; it is said on one page only. */
export const preparePage = createMiddleware<AppEnv>(async (c, next) => {
  const [assets] = await Promise.all([webNames(c.env.ASSETS), loadBrand(c)]);
  c.set("assets", assets);
  const sealed = getCookie(c, cookieName);
  if (sealed !== undefined && c.req.method === "GET") {
    const flash = opened(c, sealed);
    if (flash) c.set("flash", flash);
  }
  await next();
  const isShown =
    c.get("flash") !== undefined && (c.res.headers.get("Content-Type") ?? "").startsWith("text/html");
  if (isShown) setCookie(c, cookieName, "", { ...cookieOptions(c), maxAge: 0 });
});

function opened(c: Context<AppEnv>, sealed: string): Flash | null {
  try {
    const text = contextFor(c, { type: "link" }).secrets.open(sealed, "flash:1");
    const { secret, ...said } = Said.parse(JSON.parse(text));
    return { ...said, ...(secret !== undefined && { secret }) };
  } catch {
    return null;
  }
}
