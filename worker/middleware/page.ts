import { getCookie, setCookie } from "hono/cookie";
import { createMiddleware } from "hono/factory";
import type { Context } from "hono";
import * as z from "zod";
import { webNames } from "../adapters/assets.ts";
import { cookiePrefix, ownCookie } from "../adapters/auth.ts";
import type { AppEnv } from "../app-env.ts";
import { configOf } from "../config.ts";
import { logError } from "../log-error.ts";
import { prefetchRulesPath } from "../pages/kit/prefetch.ts";
import { publicSettings } from "../services/settings/read.ts";
import { contextFor } from "./context.ts";
import type { Flash } from "../page-state.ts";

const cookieName = (c: Context<AppEnv>) => `${cookiePrefix(configOf(c.env))}_said`;
/** Said once more where a page leads browsers without a script at once, and nowhere else. */
const plainCookieName = (c: Context<AppEnv>) => `${cookieName(c)}_plain`;
const plainSeconds = 10;
const Said = z.object({
  tone: z.enum(["good", "warn", "bad"]),
  text: z.string(),
  secret: z.string().optional(),
});

/**
 * Leaves a message for the next page of this browser, for a minute. It is sealed, so that a secret in it is not kept readable, and has
 * our prefix: a tenant's site below the same domain could set what was said to somebody else.
 */
export function say(c: Context<AppEnv>, said: Flash): void {
  const sealed = contextFor(c, { type: "link" }).secrets.seal(JSON.stringify(said), "flash:1");
  setCookie(c, cookieName(c), sealed, { ...ownCookie(configOf(c.env)), maxAge: 60 });
}

/** Pages that need no database show the defaults while it does not answer. */
async function loadSettings(c: Context<AppEnv>): Promise<void> {
  try {
    const { brand, signUp } = await publicSettings(contextFor(c, { type: "link" }));
    c.set("brand", brand);
    c.set("signUp", signUp);
  } catch (error) {
    logError({ page: "brand" }, error);
  }
}

/** The brand, the names of the pages' files, and what the form before said; it is said on one page only. */
export const preparePage = createMiddleware<AppEnv>(async (c, next) => {
  const [assets] = await Promise.all([webNames(c.env.ASSETS), loadSettings(c)]);
  c.set("assets", assets);
  const isPlain = c.req.query("plain") === "1";
  // What is said once is said on a page that is seen.
  const isAhead = c.req.header("Sec-Purpose")?.startsWith("prefetch") === true;
  const sealed = getCookie(c, cookieName(c)) ?? (isPlain ? getCookie(c, plainCookieName(c)) : undefined);
  if (sealed !== undefined && c.req.method === "GET" && !isAhead) noteFlash(c, sealed);
  await next();
  // A form may have changed what any page that was asked for ahead says.
  if (c.req.method === "POST") c.header("Clear-Site-Data", '"prefetchCache"');
  if (!(c.res.headers.get("Content-Type") ?? "").startsWith("text/html")) return;
  c.header("Speculation-Rules", `"${prefetchRulesPath}"`);
  if (c.get("flash") === undefined) return;
  setCookie(c, cookieName(c), "", { ...ownCookie(configOf(c.env)), maxAge: 0 });
  if (c.get("leadsToPlain") && sealed !== undefined)
    setCookie(c, plainCookieName(c), sealed, { ...ownCookie(configOf(c.env)), maxAge: plainSeconds });
  else if (isPlain) setCookie(c, plainCookieName(c), "", { ...ownCookie(configOf(c.env)), maxAge: 0 });
});

/** What pages offer; an account is refused in `adapters/auth.ts`. */
export const offersSignUp = (c: Context<AppEnv>): boolean =>
  (c.get("signUp") ?? configOf(c.env).SIGN_UP) === "open";

function noteFlash(c: Context<AppEnv>, sealed: string): void {
  try {
    const text = contextFor(c, { type: "link" }).secrets.open(sealed, "flash:1");
    const { secret, ...said } = Said.parse(JSON.parse(text));
    c.set("flash", { ...said, ...(secret !== undefined && { secret }) });
  } catch {
    // Not sealed by us: nothing is said.
  }
}
