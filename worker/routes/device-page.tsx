import { Hono, type Context } from "hono";
import { html } from "hono/html";
import * as z from "zod";
import type { AppEnv } from "../app-env.ts";
import { readUserCode } from "../domain/device-codes.ts";
import { limitBody } from "../middleware/body.ts";
import { contextFor } from "../middleware/context.ts";
import { countedAddress, guessWithin, limitAddress, takeFrom } from "../middleware/limit.ts";
import { toSignIn } from "../middleware/signed-in.ts";
import { requireSameOrigin, sessionActor } from "../middleware/session.ts";
import { requireRoomForKey } from "../services/keys/insert.ts";
import { noteViewer } from "./viewer.ts";
import { DeviceCodePage, DeviceDecidedPage, DevicePage } from "../pages/device.tsx";

const Decision = z.object({ code: z.string().max(50), decision: z.enum(["approve", "deny"]) });

const objectOf = (c: Context<AppEnv>, userCode: string) =>
  c.env.DEVICE_CODE.get(c.env.DEVICE_CODE.idFromName(userCode));

/** A wrong code counts against two limits: per account and per address. */
const guess = <Found,>(
  c: Context<AppEnv>,
  accountId: string,
  userCode: string | null,
  lookUp: (code: string) => Promise<Found>,
) =>
  guessWithin(
    c,
    [
      ["guessesOfAccount", accountId],
      ["guessesOfAddress", countedAddress(c)],
    ],
    async () => (userCode === null ? null : lookUp(userCode)),
  );

const wrongCode = (c: Context<AppEnv>) =>
  c.html(html`<!doctype html>${<DeviceCodePage wrong={true} />}`, 404);

/** Shows the signed-in person which client asks, to approve or deny it. */
export const devicePage = new Hono<AppEnv>()
  .use(limitAddress, noteViewer)
  .get("/", async (c) => {
    const typed = c.req.query("code");
    const userCode = typed === undefined ? null : readUserCode(typed);
    const actor = await sessionActor(c);
    if (!actor) return toSignIn(c);
    if (typed === undefined) return c.html(html`<!doctype html>${<DeviceCodePage wrong={false} />}`);
    const request = await guess(c, actor.accountId, userCode, (code) => objectOf(c, code).describe());
    if (!userCode || !request) return wrongCode(c);
    return c.html(
      html`<!doctype html>
        ${<DevicePage userCode={userCode} request={request} email={c.get("viewer")?.email} />}`,
    );
  })
  .post("/", limitBody, async (c) => {
    requireSameOrigin(c);
    const actor = await sessionActor(c);
    if (!actor) return toSignIn(c);
    const form = Decision.safeParse(await c.req.parseBody());
    const userCode = form.success ? readUserCode(form.data.code) : null;
    const approved = form.data?.decision === "approve";
    // Reported while the code is still pending, so that a key can be revoked and the device approved after all.
    if (approved) {
      await requireRoomForKey(contextFor(c, actor), actor.accountId);
      await takeFrom(c, "keyMade", actor.accountId);
    }
    const decided = await guess(c, actor.accountId, userCode, (code) =>
      objectOf(c, code).decide({ accountId: actor.accountId, sessionId: actor.sessionId }, approved),
    );
    if (!decided) return wrongCode(c);
    return c.html(html`<!doctype html>${<DeviceDecidedPage approved={approved} />}`);
  });
