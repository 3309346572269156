/** The first failure may be chance: tomorrow's backup comes by itself. */
export const failuresMailed = 2;
export const repeatAfterMs = 7 * 86_400_000;

const day = (time: Date) => time.toISOString().slice(0, 10);

type Failing = { name: string; since: Date; failures: number; reason: string };

export const failureMail = ({ name, since, failures, reason }: Failing) => ({
  subject: `Backups of ${name} fail`,
  text: `The planned backups of your database ${name} have failed ${failures} times since ${day(since)}, and none has been proven good meanwhile. The last time:\n\n${reason}\n\nThe backups from before stay. Back the database up by hand to see whether it works by now; if it goes on, mend what is named above, or ask the operator.`,
});

export const worksAgainMail = ({ name, since }: Pick<Failing, "name" | "since">) => ({
  subject: `Backups of ${name} work again`,
  text: `Backups of your database ${name} had failed since ${day(since)}. One has been made, restored and compared since: it is good.`,
});
