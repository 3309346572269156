import { inPlans } from "./plan-words.ts";
import { dayOf } from "./times.ts";

/** A single failure may be transient; the next backup is scheduled anyway. */
export const failuresMailed = 2;
export const repeatAfterMs = 7 * 86_400_000;

type Failing = { what: "database" | "volume"; name: string; since: Date; failures: number; reason: string };

export const failureMail = ({ what, name, since, failures, reason }: Failing) => ({
  subject: `Backups of ${name} are failing`,
  text: `The scheduled backups of your ${what} ${name} have failed ${failures} times since ${dayOf(since)}, and none has been verified since. The last error:\n\n${inPlans(reason)}\n\nEarlier backups are kept. Create a backup manually to see whether the problem persists. If it does, fix the cause named above, or ask the operator.`,
});

export const worksAgainMail = ({ what, name, since }: Pick<Failing, "what" | "name" | "since">) => ({
  subject: `Backups of ${name} work again`,
  text: `Backups of your ${what} ${name} had been failing since ${dayOf(since)}. A new backup has now been created and verified by a test restore.`,
});
