import { answered } from "../../answered.ts";
import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { exitCodes } from "../../failure.ts";
import { shown } from "../../shown.ts";
import { dim, say, show } from "../../terminal.ts";

export const overview = command(
  "overview",
  "Hosts, queue, deployments, money, backups and mail",
  "getOverview",
).action(() => answered("getOverview", {}));

export const system = command(
  "system",
  "How the service is set up, and what is still to be done",
  "getSystem",
).action(() => answered("getSystem", {}));

export const dns = command("dns", "The DNS records of the sites' own names", "getDns").action(() =>
  answered("getDns", {}),
);

export const testMail = command("test-mail", "Send a mail to your own address", "testMail").action(() =>
  answered("testMail", {}),
);

export const checkPayments = command(
  "check-payments",
  "Ask the payment processor whether its key and webhook are set up; exits with 1 if not",
  "checkPayments",
).action(async () => {
  const client = await connect();
  const found = await client.call("checkPayments", {}, { signal });
  show("checkPayments", found, shown);
  if (found.problems.length > 0) process.exitCode = exitCodes.failure;
});

export const rotateSecrets = command(
  "rotate-secrets",
  "Encrypt all secrets with the newest key; exits with 1 if some cannot be read",
  "rotateSecrets",
).action(async () => {
  const client = await connect();
  const total = { examined: 0, resealed: 0, overtaken: 0, unreadable: [] as string[] };
  let cursor: string | undefined;
  do {
    const page = await client.call("rotateSecrets", { limit: 100, cursor }, { signal });
    for (const name of ["examined", "resealed", "overtaken"] as const) total[name] += page[name];
    total.unreadable.push(...page.unreadable);
    cursor = page.nextCursor ?? undefined;
    if (cursor !== undefined) say(dim(`${total.examined} examined …`));
  } while (cursor !== undefined);
  if (total.unreadable.length > 0) process.exitCode = exitCodes.failure;
  show("rotateSecrets", { ...total, nextCursor: null }, shown);
});
