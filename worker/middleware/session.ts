import type { Context } from "hono";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import type { AppEnv } from "../app-env.ts";
import type { Actor } from "../context.ts";
import { configOf } from "../env.ts";
import { AppError } from "../domain/app-error.ts";
import { findSessionActor } from "../services/accounts/find-session.ts";
import { sessionDays } from "../services/accounts/sign-in.ts";
import { contextFor } from "./context.ts";

const name = "berth_session";

/** Plain http is for the loopback address only, where browsers keep no Secure cookie. */
const options = (c: Context<AppEnv>) => ({
  path: "/",
  httpOnly: true,
  sameSite: "Lax" as const,
  secure: configOf(c.env).SITE_URL.startsWith("https:"),
});

export const sessionToken = (c: Context<AppEnv>): string | undefined => getCookie(c, name);

export function rememberSession(c: Context<AppEnv>, token: string): void {
  setCookie(c, name, token, { ...options(c), maxAge: sessionDays * 86_400 });
}

export function forgetSession(c: Context<AppEnv>): void {
  deleteCookie(c, name, options(c));
}

/** A cookie alone must not change anything for another site's page: state changes need our own Origin. @throws AppError */
export function requireSameOrigin(c: Context<AppEnv>): void {
  if (c.req.method === "GET" || c.req.method === "HEAD") return;
  if (c.req.header("Origin") !== configOf(c.env).SITE_URL) throw new AppError("forbidden");
}

/** The account that is signed in here, or null. */
export async function sessionActor(c: Context<AppEnv>): Promise<(Actor & { type: "session" }) | null> {
  const token = sessionToken(c);
  return token === undefined ? null : findSessionActor(contextFor(c, { type: "link" }), token);
}
