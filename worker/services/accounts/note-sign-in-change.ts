import type { Id } from "../../../protocol/ids.ts";
import { authorOf, type Ctx } from "../../ctx.ts";
import type { Statements } from "../../db/batch.ts";
import { insertActivity } from "../../db/insert-activity.ts";
import { queueMail } from "../../mails/queue.ts";

/** What its owner, or whoever has got in, changes of how an account is signed in to: the subject of the mail about it. */
const subjects = {
  changePassword: "Your password was changed",
  resetPassword: "Your password was reset",
  turnOnTwoFactor: "Two-step sign-in was turned on",
  turnOffTwoFactor: "Two-step sign-in was turned off",
  renewRecoveryCodes: "New recovery codes were made",
} as const;
export type SignInChange = keyof typeof subjects;

/**
 * For a batch: records the change in the account's activity, and mails its owner.
 * @param address where it came from
 */
export function noteSignInChange(
  ctx: Ctx,
  accountId: Id<"account">,
  change: SignInChange,
  address: string,
): Statements {
  const id = ctx.newId("activity");
  const now = ctx.now();
  const subject = subjects[change];
  const at = `${now.toISOString().slice(0, 16).replace("T", " ")} UTC`;
  return {
    activity: ctx.statement(
      insertActivity({
        id,
        accountId,
        ...authorOf(ctx),
        operation: change,
        resourceId: null,
        arguments: "{}",
        outcome: "done",
        requestId: ctx.requestId,
        createdAt: now.getTime(),
      }),
    ),
    mail: queueMail(ctx, {
      id: `sign-in-changed:${id}`,
      accountId,
      subject,
      text: `${subject} at ${at}, from the address ${address}.\n\nIf this was you, there is nothing to do. If it was not, reset your password immediately at ${ctx.config.SITE_URL}/forgot-password, which ends all sessions, and tell the operator of this service.`,
    }),
  };
}
