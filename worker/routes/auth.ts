import { Hono } from "hono";
import type { AppEnv } from "../app-env.ts";
import { toAuth } from "../middleware/auth.ts";
import { limitBody } from "../middleware/body.ts";
import { knownAuthQuery } from "../middleware/known-query.ts";
import { limitAddress } from "../middleware/limit.ts";

/** better-auth's own endpoints (https://better-auth.com/docs): sessions for browsers and for other clients. */
export const auth = new Hono<AppEnv>()
  // better-auth serves its own error page here, which we do not expose.
  .get("/error", (c) => c.redirect("/sign-in?error=1", 303))
  // Links in mails of before 29 November 2026.
  .get("/verify-email", (c) =>
    c.redirect(`/confirm-address?token=${encodeURIComponent(c.req.query("token") ?? "")}`, 303),
  )
  .on(["GET", "POST"], "/*", limitAddress, knownAuthQuery, limitBody, (c) => toAuth(c, c.req.raw));
