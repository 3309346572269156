import type { Answer, Client } from "../../../client/index.ts";
import { answered } from "../../answered.ts";
import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { exitCodes } from "../../failure.ts";
import { shown } from "../../shown.ts";
import { dim, safe, say, show } from "../../terminal.ts";

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

const passesMax = 10;

export const rotateSecrets = command(
  "rotate-secrets",
  "Encrypt all secrets with the newest key; exits with 1 if some are left or cannot be read",
  "rotateSecrets",
).action(async () => {
  const client = await connect();
  let pass = await rotateAll(client);
  let { resealed } = pass;
  // Instances of the service with the old configuration may still encrypt with the old key.
  for (let count = 1; pass.resealed + pass.overtaken > 0 && count < passesMax; count++) {
    pass = await rotateAll(client);
    resealed += pass.resealed;
  }
  const isClean = pass.resealed + pass.overtaken === 0;
  if (!isClean || pass.unreadable.length > 0) process.exitCode = exitCodes.failure;
  show("rotateSecrets", { ...pass, resealed }, ({ examined, unreadable }) =>
    [
      `${examined} rows examined, ${resealed} values re-encrypted.`,
      ...unreadable.map(
        (row) => `No key decrypts ${safe(row)}: add the key that it was encrypted with to SECRET_KEYS_OLD.`,
      ),
      ...(isClean ? [] : ["Secrets are still being encrypted with an older key: run this again later."]),
      ...(isClean && unreadable.length === 0 ? ["All secrets are encrypted with the current key."] : []),
    ].join("\n"),
  );
});

/** One pass over all pages, as if they were one. */
async function rotateAll(client: Client): Promise<Answer<"rotateSecrets">> {
  const sum = { examined: 0, resealed: 0, overtaken: 0, unreadable: [] as string[], nextCursor: null };
  let cursor: string | undefined;
  do {
    const page = await client.call("rotateSecrets", { limit: 100, cursor }, { signal });
    for (const name of ["examined", "resealed", "overtaken"] as const) sum[name] += page[name];
    sum.unreadable.push(...page.unreadable);
    cursor = page.nextCursor ?? undefined;
    if (cursor !== undefined) say(dim(`${sum.examined} examined …`));
  } while (cursor !== undefined);
  return sum;
}
