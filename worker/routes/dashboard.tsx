import { Hono, type Context } from "hono";
import { html } from "hono/html";
import * as z from "zod";
import { KeyCreate } from "../../protocol/api/keys.ts";
import { call } from "../api/call.ts";
import type { AppEnv } from "../app-env.ts";
import { accountOf, type Ctx } from "../ctx.ts";
import { formToAuth } from "../middleware/auth.ts";
import { limitBody } from "../middleware/body.ts";
import { takeFrom } from "../middleware/limit.ts";
import { personOf, toSignIn } from "../middleware/signed-in.ts";
import { AccountPage } from "../pages/account.tsx";
import { SitesPage } from "../pages/sites.tsx";
import { claimRequest } from "../services/idempotency/claim.ts";
import { cursorOf } from "./page-cursor.ts";

type Shown = Pick<Parameters<typeof AccountPage>[0], "made" | "notice">;
async function accountPage(c: Context<AppEnv>, ctx: Ctx, shown: Partial<Shown> = {}) {
  const { data, nextCursor } = await call(ctx, "listKeys", { limit: 100, cursor: cursorOf(c, "key") });
  const page = (
    <AccountPage keys={data} next={nextCursor} once={ctx.newMark()} made={null} notice={null} {...shown} />
  );
  return c.html(html`<!doctype html>${page}`, shown.notice?.tone === "warn" ? 400 : 200);
}

/** Pages of the signed-in person that are not about a single site: the list of sites, API keys and the password. */
export const dashboard = new Hono<AppEnv>()
  .get("/", async (c) => {
    const ctx = await personOf(c);
    if (!ctx) return toSignIn(c);
    const { data, nextCursor } = await call(ctx, "listSites", { limit: 100, cursor: cursorOf(c, "site") });
    return c.html(html`<!doctype html>${<SitesPage sites={data} next={nextCursor} />}`);
  })
  .get("/account", async (c) => {
    const ctx = await personOf(c);
    return ctx ? accountPage(c, ctx) : toSignIn(c);
  })
  .post("/account/keys", limitBody, async (c) => {
    const ctx = await personOf(c);
    if (!ctx) return toSignIn(c);
    const { once, ...fields } = await c.req.parseBody();
    const input = KeyCreate.safeParse(fields);
    if (!input.success)
      return accountPage(c, ctx, {
        notice: { tone: "warn", text: "Enter a name of up to 100 characters for the key." },
      });
    const { name } = input.data;
    // Each rendered form creates one key per name, so reloading the answer in the browser does not create another.
    const claim = await claimRequest(ctx, {
      key: `${typeof once === "string" ? once : ""}:${name}`,
      method: "POST",
      path: c.req.path,
      body: "",
    });
    if ("replay" in claim)
      return accountPage(c, ctx, {
        notice: {
          tone: "good",
          text: `The key “${name}” was already created and is shown only once. If you did not save it, revoke it and create another.`,
        },
      });
    try {
      await takeFrom(c, "keyMade", accountOf(ctx));
      const made = await call(ctx, "createKey", input.data);
      await claim.keep({ status: 201, location: null, body: "" });
      return accountPage(c, ctx, { made: { name, key: made.key ?? "" } });
    } catch (error) {
      await claim.release();
      throw error;
    }
  })
  .post("/account/keys/revoke", limitBody, async (c) => {
    const ctx = await personOf(c);
    if (!ctx) return toSignIn(c);
    const form = z.object({ id: z.string() }).safeParse(await c.req.parseBody());
    await call(ctx, "revokeKey", { id: form.data?.id ?? "" });
    return c.redirect("/account", 303);
  })
  .post("/account/password", limitBody, async (c) => {
    const ctx = await personOf(c);
    if (!ctx) return toSignIn(c);
    const form = z.object({ current: z.string(), password: z.string() }).safeParse(await c.req.parseBody());
    const answer = await formToAuth(c, "/change-password", {
      currentPassword: form.data?.current ?? "",
      newPassword: form.data?.password ?? "",
      revokeOtherSessions: true,
    });
    for (const cookie of answer.headers.getSetCookie()) c.header("Set-Cookie", cookie, { append: true });
    return accountPage(c, ctx, {
      notice: answer.ok
        ? { tone: "good", text: "The password has been changed. All other browsers are signed out." }
        : {
            tone: "warn",
            text: "The password was not changed: the current password is wrong, or the new one is too short.",
          },
    });
  });
