import type { Context, ErrorHandler, NotFoundHandler } from "hono";
import { HTTPException } from "hono/http-exception";
import { matchedRoutes } from "hono/route";
import { errorCatalogue, type ErrorCode } from "../../protocol/errors.ts";
import type { AppEnv } from "../app-env.ts";
import { AppError } from "../domain/app-error.ts";
import { logError } from "../log-error.ts";
import { errorPage } from "../pages/error.tsx";

/** Whether a browser requested a page, as opposed to an API client. */
const isPage = (c: Context<AppEnv>): boolean =>
  !/^\/(api|mcp|webhooks|agent|setup|health)(\/|$)/.test(c.req.path) &&
  (c.req.header("Accept") ?? "").includes("text/html");

const answer = (c: Context<AppEnv>, code: ErrorCode, extra: Record<string, unknown> = {}) => {
  const { status, text } = errorCatalogue[code];
  if (code === "unauthorized") c.header("WWW-Authenticate", "Bearer");
  if (code === "rate_limited" && typeof extra["retryAfterSeconds"] === "number") {
    c.header("Retry-After", String(extra["retryAfterSeconds"]));
    extra = {};
  }
  if (isPage(c)) return c.html(errorPage(code, extra), status);
  return c.json({ error: text, ...extra }, status);
};

/** Logs the most specific route pattern, since the path itself may be a credential (`inv_…`, `whk_…`). */
const routeOf = (c: Context<AppEnv>): string =>
  matchedRoutes(c)
    .map(({ path }) => path)
    .reduce((longest, path) => (path.length >= longest.length ? path : longest), "");

/** The only place where an error becomes an answer; the details of anything but an AppError are only logged. */
export const onError: ErrorHandler<AppEnv> = (error, c) => {
  if (error instanceof AppError) return answer(c, error.code, error.extra);
  // Hono's own validator rejects malformed JSON this way.
  if (error instanceof HTTPException && error.status === 400)
    return answer(c, "invalid_request", { issues: [{ path: "", message: "The body is not valid JSON" }] });
  const requestId = c.get("requestId");
  logError({ requestId, method: c.req.method, route: routeOf(c) }, error);
  return answer(c, "server_error", { requestId });
};

/** Another version of the service may have the operation: without a reason, clients would tell that its resource is missing. */
export const onNotFound: NotFoundHandler<AppEnv> = (c) =>
  answer(
    c,
    "not_found",
    c.req.path.startsWith("/api/v1/")
      ? {
          reason: `This service has no operation ${c.req.method} ${c.req.path}. If your program knows it, the two have different versions: \`berth upgrade\` installs the command line that this service offers, and /docs lists its operations.`,
        }
      : {},
  );
