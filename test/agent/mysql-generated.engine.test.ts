import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { difference } from "../../agent/databases/backups/compare.ts";
import { mysql as copier } from "../../agent/databases/mysql/backup.ts";
import { containerName } from "../../agent/docker/database-objects.ts";
import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";
import { ensureImages } from "../../scripts/lib/base-images.ts";
import { DatabaseHost } from "../support/database-host.ts";
import {
  columns,
  emptied,
  quoted,
  schema,
  settings,
  statementsOf,
  things,
} from "../support/mariadb-schemas.ts";

/** test/README.md says how more of it is run. */
const versions = (process.env["BERTH_MARIADB"] ?? "11.4").split(",");
const numRuns = Number(process.env["BERTH_RUNS"] ?? 2);
const seed = Number(process.env["BERTH_SEED"] ?? 0);

const host = await new DatabaseHost().open();
beforeAll(() => ensureImages(versions.map((version) => `mariadb:${version}`)), 30 * 60_000);
afterAll(() => host.close());

const lines = (output: string) => output.split("\n").filter(Boolean);
const parsed = (output: string) => lines(output).map((line) => JSON.parse(line) as string[]);
/** Names may look like commands of the client's own. */
const client = ["mariadb", "--batch", "--skip-column-names", "--binary-mode"];
const raw = [...client, "--raw"];

/** The last column of what shows a trigger. */
const whenMade = /\t\d{4}-\d\d-\d\d [\d:.]+$/;

/** As the server itself writes its definition, and each row as its client prints it, hashed outside of the server. */
async function contentsOf(spec: DatabaseSpec): Promise<string[]> {
  const made = lines(await host.mariadb(spec, settings, raw)).toSorted();
  const found = parsed(await host.mariadb(spec, things, raw));
  const shown = found.map(([kind, name = ""]) => `SHOW CREATE ${kind} ${quoted(name)};`).join("\n");
  const definitions = lines(await host.mariadb(spec, shown, client));
  made.push(
    ...definitions.map((line, index) =>
      found[index]?.[0] === "TRIGGER" ? line.replace(whenMade, "") : line,
    ),
  );
  for (const [kind, name = ""] of found)
    if (kind === "SEQUENCE") made.push(await host.mariadb(spec, `SELECT * FROM ${quoted(name)}`, raw));
  const statements: string[] = [];
  const listed = lines(await host.mariadb(spec, columns, raw)).map((line) => JSON.parse(line) as Column);
  for (const [name, its] of Map.groupBy(listed, ([table]) => table)) {
    const isVersioned = its[0]?.[2] === 1;
    const names = its.map(([, column]) => quoted(column));
    if (isVersioned && !its.some(([, , , isStart]) => isStart === 1)) names.push("row_start", "row_end");
    const nulls = names.map((column) => `ISNULL(${column})`).join(", ");
    const from = `${quoted(name)}${isVersioned ? " FOR SYSTEM_TIME ALL" : ""}`;
    statements.push(`SELECT CONCAT(${nulls}), ${names.join(", ")} FROM ${from};`);
  }
  made.push(...(await hashesOf(spec, statements)));
  return made.map((line) => line.replaceAll(spec.databaseName, "itself"));
}

type Column = [table: string, column: string, isVersioned: 0 | 1, isRowStart: 0 | 1];

/** Of what each of them finds, in any order. */
async function hashesOf(spec: DatabaseSpec, statements: string[]): Promise<string[]> {
  const [login] = spec.logins;
  const program = `mariadb --binary-mode --batch --skip-column-names --quick --max-allowed-packet=1G --default-character-set=utf8mb4 --user=${login?.username} --password=${login?.password} ${spec.databaseName}`;
  const each = `for found; do printf %s "$found" | ${program} | LC_ALL=C sort | sha256sum || exit 1; done`;
  const hashes = await host.run(spec, ["bash", "-o", "pipefail", "-c", each, "bash", ...statements]);
  return lines(hashes).map((hash, index) => `${statements[index]?.slice(-100)} ${hash}`);
}

const serverOf = (spec: DatabaseSpec) => ({
  engine: host.engine,
  id: containerName(spec.databaseId),
  spec,
  signal: new AbortController().signal,
});
/** As a server that was just started: routines are all of its logins'. */
const arranged = (spec: DatabaseSpec) => host.does("database.rotate", { database: spec });
async function* inOrder(chunks: Buffer[]): AsyncGenerator<Buffer> {
  yield* chunks;
}

describe.each(versions)("of MariaDB %s", (version) => {
  it(
    `a backup of whatever an owner makes is proven, and its restore has all of it (${numRuns} of seed ${seed})`,
    async () => {
      const specs = [`made`, `again`].map((name) => host.specOf("mysql", name, `mariadb:${version}`));
      for (const spec of specs) {
        spec.limits.memoryMb = 512;
        await host.does("database.provision", { database: spec });
      }
      const [from, other] = specs as [DatabaseSpec, DatabaseSpec];
      const property = fc.asyncProperty(schema, async (made) => {
        await host.mariadb(from, emptied(from.databaseName));
        await host.mariadb(from, statementsOf(made, from.databaseName), raw);
        await arranged(from);
        const before = await contentsOf(from);
        const chunks: Buffer[] = [];
        const wanted = await copier.copy(serverOf(from), async (bytes) => {
          for await (const chunk of bytes) chunks.push(chunk);
        });
        for (const into of [from, other]) {
          await host.mariadb(into, emptied(into.databaseName));
          const filling = { ...wanted, databaseName: from.databaseName };
          await copier.fill?.(serverOf(into), inOrder(chunks), filling);
          expect(difference(wanted, await copier.fingerprint(serverOf(into), wanted))).toBeNull();
          await arranged(into);
          // Whoever made a view is who made it, in another database too.
          const itself = (line: string) =>
            line.replaceAll(`DEFINER=\`${from.databaseName}`, "DEFINER=`itself");
          expect((await contentsOf(into)).map(itself)).toEqual(before);
        }
      });
      await fc.assert(property, { numRuns, seed, endOnFailure: true });
    },
    Math.max(240_000, numRuns * 120_000),
  );
});
