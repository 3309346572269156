import { Hono, type Context } from "hono";
import { html } from "hono/html";
import * as z from "zod";
import type { AppEnv } from "../app-env.ts";
import { AppError } from "../domain/app-error.ts";
import { readUserCode } from "../domain/device-codes.ts";
import { limitBody } from "../middleware/body.ts";
import { clientAddress, takeFrom } from "../middleware/limit.ts";
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

const Credentials = z.object({
  email: z.string().max(254),
  password: z.string().max(200),
  device: z.string().max(20).optional(),
});

type Shown = { email: string; refused: boolean; device: string | null };
const signInPage = (c: Context<AppEnv>, shown: Shown) =>
  c.html(html`<!doctype html>${<SignInPage {...shown} />}`, shown.refused ? 401 : 200);

/** The pages of a signed-in person: for now the list of their sites. */
export const dashboard = new Hono<AppEnv>()
  .get("/", async (c) => {
    const actor = await sessionActor(c);
    if (!actor) return c.redirect("/sign-in", 303);
    const { data } = await listSites(contextFor(c, actor), { limit: 100 });
    return c.html(html`<!doctype html>${<SitesPage sites={data} />}`);
  })
  .get("/sign-in", (c) =>
    signInPage(c, { email: "", refused: false, device: readUserCode(c.req.query("device") ?? "") }),
  )
  .post("/sign-in", limitBody, actAs("link"), async (c) => {
    requireSameOrigin(c);
    const form = Credentials.safeParse(await c.req.parseBody());
    if (!form.success) return signInPage(c, { email: "", refused: true, device: null });
    const { email, password } = form.data;
    // Where to go on: a device that waits to be approved, and nowhere else.
    const device = readUserCode(form.data.device ?? "");
    await takeFrom(c, "signIn", `${email.trim().toLowerCase()} ${clientAddress(c)}`);
    try {
      rememberSession(c, await signIn(c.var.ctx, email, password));
    } catch (error) {
      if (error instanceof AppError && error.code === "unauthorized")
        return signInPage(c, { email, refused: true, device });
      throw error;
    }
    return c.redirect(device ? `/device?code=${device}` : "/", 303);
  })
  .post("/sign-out", actAs("link"), async (c) => {
    requireSameOrigin(c);
    const token = sessionToken(c);
    if (token !== undefined) await signOut(c.var.ctx, token);
    forgetSession(c);
    return c.redirect("/sign-in", 303);
  });
