import { Hono, type Context } from "hono";
import { html } from "hono/html";
import * as z from "zod";
import { KeyCreate } from "../../protocol/api/keys.ts";
import type { AppEnv } from "../app-env.ts";
import { accountOf, type Ctx } from "../ctx.ts";
import { formToAuth } from "../middleware/auth.ts";
import { limitBody } from "../middleware/body.ts";
import { takeFrom } from "../middleware/limit.ts";
import { personOf } from "../middleware/signed-in.ts";
import { AccountPage } from "../pages/account.tsx";
import { SitesPage } from "../pages/sites.tsx";
import { claimRequest } from "../services/idempotency/claim.ts";
import { createKey } from "../services/keys/create.ts";
import { listKeys } from "../services/keys/list.ts";
import { revokeKey } from "../services/keys/revoke.ts";
import { listSites } from "../services/sites/list.ts";
import { cursorOf } from "./page-cursor.ts";

type Shown = Pick<Parameters<typeof AccountPage>[0], "made" | "notice">;
async function accountPage(c: Context<AppEnv>, ctx: Ctx, shown: Partial<Shown> = {}) {
  const { data, nextCursor } = await listKeys(ctx, { limit: 100, cursor: cursorOf(c, "key") });
  const page = (
    <AccountPage keys={data} next={nextCursor} once={ctx.newMark()} made={null} notice={null} {...shown} />
  );
  return c.html(html`<!doctype html>${page}`, shown.notice?.tone === "warn" ? 400 : 200);
}

/** The pages of a signed-in person that are of no one site: all of them, API keys and the password. */
export const dashboard = new Hono<AppEnv>()
  .get("/", async (c) => {
    const ctx = await personOf(c);
    if (!ctx) return c.redirect("/sign-in", 303);
    const { data, nextCursor } = await listSites(ctx, { limit: 100, cursor: cursorOf(c, "site") });
    return c.html(html`<!doctype html>${<SitesPage sites={data} next={nextCursor} />}`);
  })
  .get("/account", async (c) => {
    const ctx = await personOf(c);
    return ctx ? accountPage(c, ctx) : c.redirect("/sign-in", 303);
  })
  .post("/account/keys", limitBody, async (c) => {
    const ctx = await personOf(c);
    if (!ctx) return c.redirect("/sign-in", 303);
    const { once, ...fields } = await c.req.parseBody();
    const input = KeyCreate.safeParse(fields);
    if (!input.success)
      return accountPage(c, ctx, {
        notice: { tone: "warn", text: "A key needs a name of up to 100 characters." },
      });
    const { name } = input.data;
    // The form of one page makes one key of a name: a browser that reloads the answer sends it again.
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
          text: `The key “${name}” is made. It was shown once: if you have it nowhere, revoke it and make another.`,
        },
      });
    try {
      await takeFrom(c, "keyMade", accountOf(ctx));
      const made = await createKey(ctx, input.data);
      await claim.keep({ status: 201, location: null, body: "" });
      return accountPage(c, ctx, { made });
    } catch (error) {
      await claim.release();
      throw error;
    }
  })
  .post("/account/keys/revoke", limitBody, async (c) => {
    const ctx = await personOf(c);
    if (!ctx) return c.redirect("/sign-in", 303);
    const form = z.object({ id: z.string() }).safeParse(await c.req.parseBody());
    await revokeKey(ctx, form.data?.id ?? "");
    return c.redirect("/account", 303);
  })
  .post("/account/password", limitBody, async (c) => {
    const ctx = await personOf(c);
    if (!ctx) return c.redirect("/sign-in", 303);
    const form = z.object({ current: z.string(), password: z.string() }).safeParse(await c.req.parseBody());
    const answer = await formToAuth(c, "/change-password", {
      currentPassword: form.data?.current ?? "",
      newPassword: form.data?.password ?? "",
      revokeOtherSessions: true,
    });
    for (const cookie of answer.headers.getSetCookie()) c.header("Set-Cookie", cookie, { append: true });
    return accountPage(c, ctx, {
      notice: answer.ok
        ? { tone: "good", text: "The password is changed; every other browser is signed out." }
        : {
            tone: "warn",
            text: "The password was not changed: the current one is wrong, or the new one too short.",
          },
    });
  });
