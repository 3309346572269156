import { execFile } from "node:child_process";
import { promisify } from "node:util";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { difference } from "../../agent/databases/backups/compare.ts";
import { postgresql as copier } from "../../agent/databases/postgresql/backup.ts";
import { containerName } from "../../agent/docker/database-objects.ts";
import { postgresql } from "../../agent/databases/postgresql/server.ts";
import { run } from "../../agent/databases/run-program.ts";
import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";
import { ensureImages } from "../../scripts/lib/base-images.ts";
import { DatabaseHost } from "../support/database-host.ts";
import { definitions, emptied, schema, statementsOf, tablesWithRows } from "../support/postgresql-schemas.ts";

/** test/README.md says how more of it is run. */
const versions = (process.env["BERTH_POSTGRES"] ?? "17").split(",");
const numRuns = Number(process.env["BERTH_RUNS"] ?? 2);
const seed = Number(process.env["BERTH_SEED"] ?? 0);
const { signal } = new AbortController();

let host: DatabaseHost;
beforeAll(async () => {
  await ensureImages(versions.map((version) => `postgres:${version}`));
  host = await new DatabaseHost().open();
}, 30 * 60_000);
afterAll(() => host.close());

const serverOf = (spec: DatabaseSpec) => ({
  engine: host.engine,
  id: containerName(spec.databaseId),
  spec,
  signal,
});
/** As a server is that was just made. */
async function emptyAgain(spec: DatabaseSpec): Promise<void> {
  await host.psql(spec, emptied);
  await postgresql.arrange(spec, (program) => run(host, containerName(spec.databaseId), program, signal));
}

const lines = (output: string) =>
  output
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as string);

/** Whatever it holds, read over the server's socket by the server's user, with the rows hashed outside of the server. */
async function contentsOf(spec: DatabaseSpec): Promise<string[]> {
  const made = lines(await host.psql(spec, definitions, "berth"));
  for (const table of lines(await host.psql(spec, tablesWithRows, "berth"))) {
    const copy = `psql --no-psqlrc -qAt -v ON_ERROR_STOP=1 -U berth -d ${spec.databaseName} -c "COPY (SELECT * FROM ONLY $TABLE) TO STDOUT" | LC_ALL=C sort | sha256sum`;
    const inServer = ["exec", "--env", `TABLE=${table}`, "--env", "PGCLIENTENCODING=UTF8"];
    const program = [containerName(spec.databaseId), "bash", "-o", "pipefail", "-c", copy];
    const { stdout } = await promisify(execFile)("docker", [...inServer, ...program]);
    made.push(`${table}: ${stdout}`);
  }
  return made;
}

describe.each(versions)("of PostgreSQL %s", (version) => {
  it(
    `a backup of whatever an owner makes is proven, and its restore has all of it (${numRuns} of seed ${seed})`,
    async () => {
      const image = `postgres:${version}`;
      const from = await host.provision("postgresql", `made${version}`, image);
      const into = await host.provision("postgresql", `again${version}`, image);
      expect(await host.psql(from, "SHOW server_version")).toMatch(new RegExp(`^${version}\\.`));
      const property = fc.asyncProperty(schema, async (made) => {
        if (made.big) await emptyAgain(from);
        // An owner who drops the schema has dropped what is Berth's in it.
        else await host.psql(from, emptied);
        await host.psql(from, statementsOf(made));
        const chunks: Buffer[] = [];
        const wanted = await copier.copy(serverOf(from), async (bytes) => {
          for await (const chunk of bytes) chunks.push(chunk);
        });
        const backup = { ...wanted, databaseName: from.databaseName };
        const isSame = async () => {
          expect(difference(wanted, await copier.fingerprint(serverOf(into), wanted))).toBeNull();
          expect(await contentsOf(into)).toEqual(await contentsOf(from));
        };
        await emptyAgain(into);
        await copier.fill?.(serverOf(into), inOrder(chunks), backup);
        await isSame();
        await copier.refill?.(serverOf(into), () => inOrder(chunks), backup);
        await isSame();
      });
      await fc.assert(property, { numRuns, seed, endOnFailure: true });
    },
    Math.max(240_000, numRuns * 60_000),
  );
});

async function* inOrder(chunks: Buffer[]): AsyncGenerator<Buffer> {
  yield* chunks;
}
