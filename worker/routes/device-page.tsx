import { Hono, type Context } from "hono";
import { html } from "hono/html";
import * as z from "zod";
import type { AppEnv } from "../app-env.ts";
import { readUserCode } from "../domain/device-codes.ts";
import { limitBody } from "../middleware/body.ts";
import { clientAddress, takeFrom } from "../middleware/limit.ts";
import { requireSameOrigin, sessionActor } from "../middleware/session.ts";
import { DeviceCodePage, DeviceDecidedPage, DevicePage } from "../pages/device.tsx";

const Decision = z.object({ code: z.string().max(50), decision: z.enum(["approve", "deny"]) });

/** Every wrong code is counted three times over: by account, by address, for the whole service. */
async function wrongCode(c: Context<AppEnv>, accountId: string) {
  await takeFrom(c, "guessesOfAccount", accountId);
  await takeFrom(c, "guessesOfAddress", clientAddress(c));
  await takeFrom(c, "guessesOfService", "all");
  return c.html(html`<!doctype html>${<DeviceCodePage wrong={true} />}`, 404);
}

/** Where a signed-in person sees what asks, and approves or denies it. */
export const devicePage = new Hono<AppEnv>()
  .get("/", async (c) => {
    const typed = c.req.query("code");
    const userCode = typed === undefined ? null : readUserCode(typed);
    const actor = await sessionActor(c);
    if (!actor) return c.redirect(`/sign-in${userCode ? `?device=${userCode}` : ""}`, 303);
    if (typed === undefined) return c.html(html`<!doctype html>${<DeviceCodePage wrong={false} />}`);
    const request =
      userCode && (await c.env.DEVICE_CODE.get(c.env.DEVICE_CODE.idFromName(userCode)).describe());
    if (!userCode || !request) return wrongCode(c, actor.accountId);
    return c.html(html`<!doctype html>${<DevicePage userCode={userCode} request={request} />}`);
  })
  .post("/", limitBody, async (c) => {
    requireSameOrigin(c);
    const actor = await sessionActor(c);
    if (!actor) return c.redirect("/sign-in", 303);
    const form = Decision.safeParse(await c.req.parseBody());
    const userCode = form.success ? readUserCode(form.data.code) : null;
    if (!form.success || !userCode) return wrongCode(c, actor.accountId);
    const approved = form.data.decision === "approve";
    const decided = await c.env.DEVICE_CODE.get(c.env.DEVICE_CODE.idFromName(userCode)).decide(
      actor.accountId,
      approved,
    );
    if (!decided) return wrongCode(c, actor.accountId);
    return c.html(html`<!doctype html>${<DeviceDecidedPage approved={approved} />}`);
  });
