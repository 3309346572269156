import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { redisClient } from "../../agent/databases/redis/server.ts";
import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";
import { ensureImages } from "../../scripts/lib/base-images.ts";
import { DatabaseHost } from "../support/database-host.ts";
import { content, contentsOf, statementsOf } from "../support/redis-contents.ts";

/** test/README.md says how more of it is run. */
const versions = (process.env["BERTH_REDIS"] ?? "7.2").split(",");
/** `7.2`, or a whole name as `valkey/valkey:8`. */
const imageOf = (version: string) => (version.includes(":") ? version : `redis:${version}`);
const numRuns = Number(process.env["BERTH_RUNS"] ?? 2);
const seed = Number(process.env["BERTH_SEED"] ?? 0);

const host = await new DatabaseHost().open();
beforeAll(() => ensureImages(versions.map(imageOf)), 30 * 60_000);
afterAll(() => host.close());

/** As the owner, by the server's client. */
async function ask(spec: DatabaseSpec, input: string): Promise<string> {
  const [login] = spec.logins;
  const who = ["--user", login?.username ?? "", "--pass", login?.password ?? "", "--no-auth-warning"];
  const said = await host.run(spec, redisClient(...who, "--no-raw"), `${input}\n`);
  // How long a slow one took.
  return said.replace(/^\(\d+\.\d+s\)\n?/gm, "").trimEnd();
}

describe.each(versions)("of Redis %s", (version) => {
  it(
    `a backup of whatever an owner stores is proven, and its restore has all of it (${numRuns} of seed ${seed})`,
    async () => {
      const spec = host.specOf("redis", "stored", imageOf(version));
      await host.does("database.provision", { database: spec });
      const property = fc.asyncProperty(content, async (stored) => {
        await ask(spec, "FLUSHALL\nFUNCTION FLUSH");
        expect(await ask(spec, statementsOf(stored))).not.toMatch(/^\(error\)/m);
        const before = await contentsOf((input) => ask(spec, input));
        const backupId = await host.backUp(spec);
        expect(await host.verify(spec, backupId)).toBeNull();
        expect(await host.restore(spec, backupId)).toBeNull();
        expect(await contentsOf((input) => ask(spec, input))).toEqual(before);
      });
      await fc.assert(property, { numRuns, seed, endOnFailure: true });
    },
    Math.max(240_000, numRuns * 60_000),
  );
});
