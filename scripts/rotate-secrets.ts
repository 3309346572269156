import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { SecretsRotated } from "../protocol/api/secrets.ts";
import { projectRoot } from "./lib/project-root.ts";
import { call } from "./lib/client.ts";

/**
 * Reseals all secrets sealed under older keys with SECRET_KEY. May be interrupted and repeated at any time. Usage:
 * npm run rotate-secrets [-- --url https://berth.example] with an operator's key in BERTH_API_KEY; without them,
 * those of `npm start` (--state-dir).
 */
const { values: flags } = parseArgs({
  options: {
    url: { type: "string" },
    "state-dir": { type: "string", default: join(projectRoot, ".berth") },
  },
});
const local = join(flags["state-dir"], "local.json");
const known = existsSync(local)
  ? (JSON.parse(readFileSync(local, "utf8")) as { siteUrl: string; apiKey: string })
  : undefined;
const url = flags.url ?? known?.siteUrl;
const key = process.env["BERTH_API_KEY"] ?? (flags.url === undefined ? known?.apiKey : undefined);
if (url === undefined || key === undefined)
  throw new Error("`npm start` does not run here: give --url and an operator's key in BERTH_API_KEY.");

/**
 * Instances of the Worker with the old configuration may still seal with the old key, so passes repeat until none is
 * left.
 */
const passesMax = 10;
for (let pass = 1; ; pass++) {
  const { resealed, left, unreadable } = await rotateAll(url, key);
  console.log(`Pass ${pass}: ${resealed} values resealed, ${unreadable.length} rows unreadable`);
  if (resealed + left > 0 && pass < passesMax) continue;
  for (const row of unreadable)
    console.error(`No key decrypts ${row}: add the key it was sealed with to SECRET_KEYS_OLD.`);
  if (unreadable.length > 0 || resealed + left > 0) process.exit(1);
  console.log("All secrets are under the current key.");
  console.log(
    "API keys and webhook addresses created under an older key work as long as that key is in TOKEN_KEY or SECRET_KEYS_OLD.",
  );
  break;
}

async function rotateAll(from: string, token: string) {
  const sum = { resealed: 0, left: 0, unreadable: [] as string[] };
  for (let cursor: string | null | undefined; cursor !== null;) {
    const body = { limit: 100, ...(cursor && { cursor }) };
    const answer = await call<SecretsRotated>(
      "POST",
      `${from}/api/v1/secrets/rotate`,
      token,
      body,
      [200, 429],
    );
    if (answer.status === 429) {
      await delay(5000);
      continue;
    }
    const { resealed, overtaken, unreadable, nextCursor } = answer.body;
    sum.resealed += resealed;
    sum.left += overtaken;
    sum.unreadable.push(...unreadable);
    cursor = nextCursor;
  }
  return sum;
}
