import { Hono, type Context } from "hono";
import { html } from "hono/html";
import * as z from "zod";
import type { AppEnv } from "../app-env.ts";
import type { Actor } from "../ctx.ts";
import { AppError } from "../domain/app-error.ts";
import { readUserCode } from "../domain/device-codes.ts";
import { limitBody } from "../middleware/body.ts";
import { contextFor } from "../middleware/context.ts";
import { countedAddress, guessWithin, limitAddress, takeFrom } from "../middleware/limit.ts";
import { toSignIn } from "../middleware/signed-in.ts";
import { requireSameOrigin, sessionActor } from "../middleware/session.ts";
import type { DeviceRequest } from "../objects/rpc.ts";
import { requireSecondFactor } from "../services/accounts/second-factor.ts";
import { requireRoomForKey } from "../services/keys/insert.ts";
import { noteViewer } from "./viewer.ts";
import { DeviceCodePage, DeviceDecidedPage, DevicePage } from "../pages/device.tsx";

const Decision = z.object({
  code: z.string().max(50),
  decision: z.enum(["approve", "deny"]),
  secondFactor: z.string().max(100).default(""),
});

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

const asking = (c: Context<AppEnv>, userCode: string, request: DeviceRequest, refusal: string | null) => {
  const viewer = c.get("viewer");
  return html`<!doctype html> ${(
      <DevicePage
        userCode={userCode}
        request={request}
        email={viewer?.email}
        takesCode={viewer?.twoFactorEnabled === true}
        refusal={refusal}
      />
    )}`;
};

/** Why the code of the second step is not accepted; null: it is, or none is needed. */
async function secondFactorRefusal(
  c: Context<AppEnv>,
  actor: Actor & { type: "session" },
  typed: string,
): Promise<string | null> {
  try {
    await requireSecondFactor(contextFor(c, actor), actor.accountId, typed);
    return null;
  } catch (error) {
    if (error instanceof AppError && error.code === "invalid_request")
      return "The code of your authenticator app is wrong or was used before. Wait for the next one.";
    throw error;
  }
}

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
    return c.html(asking(c, userCode, request, null));
  })
  .post("/", limitBody, async (c) => {
    requireSameOrigin(c);
    const actor = await sessionActor(c);
    if (!actor) return toSignIn(c);
    const form = Decision.safeParse(await c.req.parseBody());
    const userCode = form.success ? readUserCode(form.data.code) : null;
    const approved = form.data?.decision === "approve";
    // Reported while the code is still pending, so that a key can be revoked and the device approved after all.
    if (approved && userCode && c.get("viewer")?.twoFactorEnabled === true) {
      const request = await guess(c, actor.accountId, userCode, (code) => objectOf(c, code).describe());
      if (!request) return wrongCode(c);
      const refusal = await secondFactorRefusal(c, actor, form.data?.secondFactor ?? "");
      if (refusal !== null) return c.html(asking(c, userCode, request, refusal), 400);
    }
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
