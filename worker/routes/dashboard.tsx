import { Hono, type Context } from "hono";
import { html } from "hono/html";
import * as z from "zod";
import type { AppEnv } from "../app-env.ts";
import { AppError } from "../domain/app-error.ts";
import { limitBody } from "../middleware/body.ts";
import { actAs, contextFor } from "../middleware/context.ts";
import {
  forgetSession,
  rememberSession,
  requireSameOrigin,
  sessionActor,
  sessionToken,
} from "../middleware/session.ts";
import { SignInPage } from "../pages/sign-in.tsx";
import { SitesPage } from "../pages/sites.tsx";
import { signIn } from "../services/accounts/sign-in.ts";
import { signOut } from "../services/accounts/sign-out.ts";
import { listSites } from "../services/sites/list.ts";

const Credentials = z.object({ email: z.string().max(254), password: z.string().max(200) });

const signInPage = (c: Context<AppEnv>, email: string, refused: boolean) =>
  c.html(html`<!doctype html>${<SignInPage email={email} refused={refused} />}`, refused ? 401 : 200);

/** The pages of a signed-in person: for now the list of their sites. */
export const dashboard = new Hono<AppEnv>()
  .get("/", async (c) => {
    const actor = await sessionActor(c);
    if (!actor) return c.redirect("/sign-in", 303);
    const { data } = await listSites(contextFor(c, actor), { limit: 100 });
    return c.html(html`<!doctype html>${<SitesPage sites={data} />}`);
  })
  .get("/sign-in", (c) => signInPage(c, "", false))
  .post("/sign-in", limitBody, actAs("link"), async (c) => {
    requireSameOrigin(c);
    const form = Credentials.safeParse(await c.req.parseBody());
    if (!form.success) return signInPage(c, "", true);
    try {
      rememberSession(c, await signIn(c.var.ctx, form.data.email, form.data.password));
    } catch (error) {
      if (error instanceof AppError && error.code === "unauthorized")
        return signInPage(c, form.data.email, true);
      throw error;
    }
    return c.redirect("/", 303);
  })
  .post("/sign-out", actAs("link"), async (c) => {
    requireSameOrigin(c);
    const token = sessionToken(c);
    if (token !== undefined) await signOut(c.var.ctx, token);
    forgetSession(c);
    return c.redirect("/sign-in", 303);
  });
