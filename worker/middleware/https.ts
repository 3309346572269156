import { createMiddleware } from "hono/factory";
import type { AppEnv } from "../app-env.ts";
import { isLoopback } from "../../protocol/loopback.ts";
import { configOf } from "../config.ts";
import { AppError } from "../domain/app-error.ts";
import { setHeaders } from "./answer-headers.ts";

const twoYearsSeconds = 63_072_000;

/**
 * If the service uses https, plain http requests are redirected (GET) or refused (others), except from the loopback
 * address.
 */
export const httpsOnly = createMiddleware<AppEnv>(async (c, next) => {
  if (!configOf(c.env).SITE_URL.startsWith("https:")) return next();
  const url = new URL(c.req.url);
  if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    if (c.req.method !== "GET" && c.req.method !== "HEAD")
      throw new AppError("forbidden", { reason: "This service is available over https only." });
    url.protocol = "https:";
    return c.redirect(url.href, 301);
  }
  await next();
  setHeaders(c, { "Strict-Transport-Security": `max-age=${twoYearsSeconds}` });
});
