import type { Context } from "hono";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import type { Id } from "../../protocol/ids.ts";
import { cookiePrefix, isSecure, ownCookie } from "../adapters/auth.ts";
import type { AppEnv } from "../app-env.ts";
import { configOf, type Config } from "../config.ts";
import type { Actor } from "../ctx.ts";
import { viewerOf } from "../services/accounts/view-as.ts";
import { contextFor } from "./context.ts";

const header = "X-Berth-View-As";
const cookieOf = (config: Config): string => `${cookiePrefix(config)}_view_as`;
const maxAgeSeconds = 30 * 60;

/**
 * The actor itself, or a viewer of the account that an operator asks for: by a header, or in a browser by a cookie, which
 * grants nothing by itself. @throws AppError forbidden for a header of anybody else, not_found
 */
export async function viewing(c: Context<AppEnv>, actor: Actor): Promise<Actor> {
  const named = c.req.header(header);
  if (named !== undefined) return viewerOf(contextFor(c, actor), named);
  const mayView = actor.type === "session" && actor.role === "operator";
  const kept = mayView ? getCookie(c, cookieOf(configOf(c.env))) : undefined;
  return kept === undefined ? actor : viewerOf(contextFor(c, actor), kept);
}

/** For half an hour, this browser shows the account to its operator. */
export function startViewing(c: Context<AppEnv>, accountId: Id<"account">): void {
  const config = configOf(c.env);
  setCookie(c, cookieOf(config), accountId, { ...ownCookie(config), maxAge: maxAgeSeconds });
}

export function endViewing(c: Context<AppEnv>): void {
  const config = configOf(c.env);
  deleteCookie(c, cookieOf(config), { path: "/", secure: isSecure(config) });
}
