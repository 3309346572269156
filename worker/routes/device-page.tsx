import { Hono, type Context } from "hono";
import * as z from "zod";
import type { AppEnv } from "../app-env.ts";
import { readUserCode } from "../domain/device-codes.ts";
import { formFields, limitBody } from "../middleware/body.ts";
import { countedAddress, guessWithin, limitAddress } from "../middleware/limit.ts";
import { toSignIn } from "../middleware/signed-in.ts";
import { requireSameOrigin, sessionActor } from "../middleware/session.ts";
import type { DeviceRequest } from "../objects/rpc.ts";
import { approvalRefusal, Decision } from "./approval.ts";
import { show } from "./show.ts";
import { noteViewer } from "./viewer.ts";
import { DeviceCodePage, DeviceDecidedPage, DevicePage } from "../pages/device.tsx";

const DeviceDecision = Decision.extend({ code: z.string().max(50) });

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
  return (
    <DevicePage
      userCode={userCode}
      request={request}
      email={viewer?.email}
      takesCode={viewer?.twoFactorEnabled === true}
      refusal={refusal}
    />
  );
};

const wrongCode = (c: Context<AppEnv>) => show(c, <DeviceCodePage wrong={true} />, 404);

/** Shows the signed-in person which client asks, to approve or deny it. */
export const devicePage = new Hono<AppEnv>()
  .use(limitAddress, noteViewer)
  .get("/", async (c) => {
    const typed = c.req.query("code");
    const userCode = typed === undefined ? null : readUserCode(typed);
    const actor = await sessionActor(c);
    if (!actor) return toSignIn(c);
    if (typed === undefined) return show(c, <DeviceCodePage wrong={false} />);
    const request = await guess(c, actor.accountId, userCode, (code) => objectOf(c, code).describe());
    if (!userCode || !request) return wrongCode(c);
    return show(c, asking(c, userCode, request, null));
  })
  .post("/", limitBody, async (c) => {
    requireSameOrigin(c);
    const actor = await sessionActor(c);
    if (!actor) return toSignIn(c);
    const form = DeviceDecision.safeParse(await formFields(c.req));
    const userCode = form.success ? readUserCode(form.data.code) : null;
    const approved = form.data?.decision === "approve";
    if (approved) {
      // Before the second step: nothing is approved by a code that nobody waits with, and its code is not used up.
      const request = await guess(c, actor.accountId, userCode, (code) => objectOf(c, code).describe());
      if (!userCode || !request) return wrongCode(c);
      // Refused while the code is still pending, so that a key can be revoked and the device approved after all.
      const refusal = await approvalRefusal(c, actor, form.data?.secondFactor ?? "");
      if (refusal !== null) return show(c, asking(c, userCode, request, refusal), 400);
    }
    const decided = await guess(c, actor.accountId, userCode, (code) =>
      objectOf(c, code).decide({ accountId: actor.accountId, sessionId: actor.sessionId }, approved),
    );
    if (!decided) return wrongCode(c);
    return show(c, <DeviceDecidedPage approved={approved} />);
  });
