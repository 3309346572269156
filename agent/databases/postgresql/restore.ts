import { Readable } from "node:stream";
import type { DatabaseSpec } from "../../../protocol/agent/jobs.ts";
import type { Run } from "../database-engine.ts";
import { run } from "../run-program.ts";
import { feed, UnfitError, withHead, type Filling, type Server } from "../backups/copier.ts";
import { saysDiskFull } from "../../docker/disk-full.ts";
import { strayMark } from "../backups/strays.ts";
import { notOfExtension, own, parsed, printable } from "./own-objects.ts";
import {
  backupReader,
  createRole,
  dropStatistics,
  emptyDatabase,
  identifier,
  literal,
  ownEnvironment,
  postgresql,
  psqlCommand,
  renameOwner,
} from "./server.ts";

const ownerOptions =
  "-c statement_timeout=0 -c idle_in_transaction_session_timeout=0 -c standard_conforming_strings=on";

const runsOn =
  ({ engine, id, signal }: Server): Run =>
  (program) =>
    run({ engine }, id, program, signal);
const usernameOf = ({ logins }: DatabaseSpec): string => logins[0]?.username ?? "";

/** Uses the owner's own login: the dump's statements run with the owner's rights, never with Berth's. */
export async function fill(server: Server, bytes: AsyncIterable<Buffer>, from: Filling): Promise<void> {
  await prepare(server, from);
  await restore(server, from, bytes, ["--exit-on-error"]);
  await complete(server, from);
}

/**
 * Restores what `fill` cannot. Names are looked up in the database's own schemas, as when its rows were written.
 * Indexes are created before the rows, because building one looks names up in no schema since version 17. Checks are
 * created after them, because they may read other tables' rows, and are not valid if rows contradict them. Generated
 * columns are computed once more for the same reason. A materialized view whose query fails stays unpopulated. What
 * fails is tried again after the others, as it may need them without the dump's knowledge.
 */
export async function refill(
  server: Server,
  bytes: () => AsyncIterable<Buffer>,
  from: Filling,
): Promise<void> {
  const { spec } = server;
  const runs = runsOn(server);
  await emptyDatabase(spec.databaseName, from.databaseName, runs);
  await postgresql.arrange(spec, runs);
  await asOwner(server, spec.databaseName, [setAgain(spec.databaseName, "search_path", pathOf(from))]);
  await prepare(server, from);
  const again = () => withOwnPath(bytes());
  const entries = await listEntries(server, again());
  const restorePart = async (part: Part) => {
    let left = entries.filter((entry) => entry.part === part).map(({ id }) => id);
    for (let hasLogins = false; ; hasLogins = true) {
      await runs({
        command: ["sh", "-c", 'cat >"$0"', listFile],
        input: left.map((id) => `${id};\n`).join(""),
      });
      try {
        return await restore(server, from, again(), [`--use-list=${listFile}`]);
      } catch (error) {
        if (!(error instanceof UnfitError) || lacksResources(error.message)) throw error;
        const named = await namedInErrors(runs).catch(() => new Set());
        const failed = left.filter((id) => named.has(id));
        const isHelped = !hasLogins && (await createLogins(runs));
        if (failed.length === 0 || (failed.length === left.length && !isHelped)) throw error;
        left = failed;
      }
    }
  };
  await restorePart("definitions");
  const checks = await takeChecks(server, from);
  await restorePart("rows");
  await computeAgain(server, from);
  await asOwner(server, from.databaseName, checks.map(checkAgain));
  await restorePart("rest");
  await restorePart("views").catch((error: unknown) => {
    if (!(error instanceof UnfitError) || lacksResources(error.message)) throw error;
  });
  await complete(server, from, [`ALTER DATABASE ${identifier(spec.databaseName)} RESET search_path;`]);
}

const lacksResources = (text: string): boolean => saysDiskFull([text]) || /out of memory/i.test(text);

/** The dump names the role that owned everything in policies and user mappings. */
async function prepare(server: Server, { databaseName: from, extensions }: Filling): Promise<void> {
  const { databaseName } = server.spec;
  if (extensions && !extensions.includes("pg_stat_statements"))
    await dropStatistics(databaseName, runsOn(server));
  if (from !== databaseName) await renameOwner(databaseName, databaseName, from, runsOn(server));
}

async function complete(server: Server, from: Filling, first: string[] = []): Promise<void> {
  const { databaseName } = server.spec;
  if (from.databaseName !== databaseName)
    await renameOwner(databaseName, from.databaseName, databaseName, runsOn(server));
  const again = from.settings?.map(({ name, value }) => setAgain(databaseName, name, value)) ?? [];
  await asOwner(server, databaseName, [...first, ...again]);
}

/** Also takes hours. @param owner the present name of the role that owns everything */
async function asOwner({ engine, id, spec }: Server, owner: string, statements: string[]): Promise<void> {
  const env = [strayMark, "PGCLIENTENCODING=UTF8", `PGOPTIONS=${ownerOptions} -c role=${owner}`];
  const command = psqlCommand(spec.databaseName, usernameOf(spec));
  if (statements.length > 0)
    await feed(
      "psql",
      await engine.pipe(id, { command, env }),
      Readable.from([Buffer.from(statements.join("\n"))]),
    );
}

async function restore(
  server: Server,
  { databaseName: from }: Filling,
  bytes: AsyncIterable<Buffer>,
  options: string[],
): Promise<void> {
  const program = await server.engine.pipe(server.id, {
    command: [
      ...loggingErrors,
      "pg_restore",
      `--username=${usernameOf(server.spec)}`,
      `--dbname=${server.spec.databaseName}`,
      "--no-owner",
      "--no-privileges",
      ...options,
    ],
    env: [strayMark, `PGOPTIONS=${ownerOptions} -c role=${from}`],
  });
  await feed("pg_restore", program, bytes);
}

/** The name under which the comment on the database is among its settings. */
export const databaseComment = "comment";

/** Settings stored as a list of quoted names, which as a single text would be one name. */
const lists = ["search_path", "temp_tablespaces", "local_preload_libraries"];
const namesIn = (list: string): string[] =>
  Array.from(
    list.matchAll(/"((?:[^"]|"")*)"|[^\s,]+/g),
    ([word, quoted]) => quoted?.replaceAll('""', '"') ?? word,
  );

/**
 * A single DO statement, so that no setting affects the next one. Settings that this server rejects are skipped. Those
 * of an extension can be set once its library is loaded, which validating one of its functions does.
 */
function setAgain(databaseName: string, name: string, value: string): string {
  if (name === databaseComment)
    return `COMMENT ON DATABASE ${identifier(databaseName)} IS ${literal(value)};`;
  const [first = "", ...others] = name.split(".");
  const path = [first, ...others].map(identifier).join(".");
  const load =
    others.length === 0
      ? ""
      : `PERFORM pg_catalog.fmgr_c_validator(pg_catalog.min(oid)) FROM pg_catalog.pg_proc WHERE probin OPERATOR(pg_catalog.=) ${literal(`$libdir/${first}`)};`;
  const alter = `ALTER DATABASE ${identifier(databaseName)} SET ${path}`;
  // A session refuses a tablespace that is not there; a database accepts it.
  const body = lists.includes(name)
    ? `BEGIN PERFORM pg_catalog.set_config(${literal(name)}, ${literal(value)}, true); EXECUTE ${literal(`${alter} FROM CURRENT`)};
        EXCEPTION WHEN OTHERS THEN EXECUTE ${literal(`${alter} TO ${namesIn(value).map(literal).join(", ")}`)}; END;`
    : `EXECUTE ${literal(`${alter} TO ${literal(value)}`)};`;
  return `DO ${literal(`BEGIN ${load} ${body} EXCEPTION WHEN OTHERS THEN NULL; END`)};`;
}

/**
 * The database's own path, and after it every schema with a table, because clients may set another one. Without
 * pg_catalog, which is then searched first: the dump names the server's own functions without a schema.
 */
function pathOf({ tables, settings = [] }: Filling): string {
  const set = settings.find(({ name }) => name === "search_path")?.value ?? '"$user", public';
  const found = tables.flatMap(({ name }) => /^("(?:[^"]|"")*")\."/.exec(name)?.[1] ?? []);
  const names = set.split(",").map((name) => name.trim());
  const searched = names.filter((name) => !["", '""', "pg_catalog", '"pg_catalog"'].includes(name));
  return [...new Set([...searched, ...found])].join(", ");
}

/** The statement by which an archive looks names up in no schema, and one of the same length that lifts it. */
const noPath = "SELECT pg_catalog.set_config('search_path', '', false);";
const ownPath = "RESET search_path;".padEnd(noPath.length);
/** It is one of the first entries of the archive. */
const headBytes = 64 * 1024;

const withOwnPath = (bytes: AsyncIterable<Buffer>): AsyncIterable<Buffer> =>
  withHead(bytes, headBytes, (head) => {
    const at = head.indexOf(noPath);
    if (at >= 0) head.write(ownPath, at);
    return head;
  });

/** The parts of an archive in the order of their restore; `definitions` are all others. */
const parts = {
  rows: /^(?:TABLE DATA|SEQUENCE SET|BLOBS) /,
  rest: /^(?:FK CONSTRAINT|CHECK CONSTRAINT|TRIGGER|EVENT TRIGGER|POLICY|ROW SECURITY|COMMENT) /,
  views: /^MATERIALIZED VIEW DATA /,
};
type Part = "definitions" | keyof typeof parts;
const partOf = (described: string): Part =>
  (["rows", "rest", "views"] as const).find((part) => parts[part].test(described)) ?? "definitions";

const listFile = "/tmp/berth-restore.list";
const errorFile = "/tmp/berth-restore.errors";
/** Runs the program that follows with all that it says in the file, where verbose errors say what they are of. */
const loggingErrors = [
  "bash",
  "-o",
  "pipefail",
  "-c",
  '"$@" --verbose 2>&1 | tee "$0" | sed -n "/error: /p" >&2',
  errorFile,
];

/** The entries that the last restore's errors name. */
async function namedInErrors(runs: Run): Promise<Set<string>> {
  const found = await runs({
    command: ["sed", "-n", "s/^pg_restore: from TOC entry \\([0-9]*\\);.*/\\1/p", errorFile],
  });
  return new Set(found.split("\n"));
}

/** Creates the logins that the last restore's errors miss, as policies may name them. @returns whether there are any */
async function createLogins(runs: Run): Promise<boolean> {
  const missing = 's/^.*ERROR:  role "\\([a-z][a-z0-9_]*_[0-9]\\{1,9\\}\\)" does not exist$/\\1/p';
  const found = (await runs({ command: ["sed", "-n", missing, errorFile] })).split("\n").filter(Boolean);
  for (const name of new Set(found)) await createRole(name, runs);
  return found.length > 0;
}

async function listEntries(
  { engine, id }: Server,
  bytes: AsyncIterable<Buffer>,
): Promise<{ id: string; part: Part }[]> {
  const list = await engine.pipe(id, { command: ["pg_restore", "--list"], env: [strayMark] });
  const output: Buffer[] = [];
  await feed("pg_restore", list, bytes, (some) => void output.push(some));
  const lines = Buffer.concat(output)
    .toString()
    .matchAll(/^(\d+); \d+ \d+ (.*)$/gm);
  return Array.from(lines, ([, entry = "", described = ""]) => ({ id: entry, part: partOf(described) }));
}

/** A check of a table or a domain: what it belongs to, its name, and its definition. */
type Check = [of: string, name: string, definition: string];
// An inherited check goes with the one that it comes from.
const listChecks = `SELECT ${printable(`json_build_array(
    CASE WHEN k.conrelid <> 0 THEN 'TABLE ' || k.conrelid::regclass ELSE 'DOMAIN ' || k.contypid::regtype END,
    quote_ident(k.conname), pg_get_constraintdef(k.oid))`)}
  FROM pg_constraint k JOIN pg_namespace n ON n.oid = k.connamespace
  WHERE k.contype = 'c' AND k.coninhcount = 0 AND ${own}
    AND ${notOfExtension("pg_class", "k.conrelid")} AND ${notOfExtension("pg_type", "k.contypid")}
  LIMIT 1000;`;

/** As Berth's own reader, which sees all names with their schemas. */
async function list<T>(server: Server, statement: string): Promise<T[]> {
  const command = psqlCommand(server.spec.databaseName, backupReader);
  const output = await runsOn(server)({ command, env: ownEnvironment, input: statement });
  return parsed<T>(output.split("\n").filter(Boolean));
}

// Older servers cannot compute a column again.
const listGenerated = `SELECT ${printable("json_build_array(c.oid::regclass, quote_ident(a.attname), pg_get_expr(d.adbin, d.adrelid))")}
  FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    JOIN pg_class c ON c.oid = d.adrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE a.attgenerated = 's' AND c.relkind = 'r' AND ${own} AND ${notOfExtension("pg_class", "c.oid")}
    AND current_setting('server_version_num')::int >= 170000;`;

/** Computes the stored generated columns from the rows of all tables. */
async function computeAgain(server: Server, { databaseName: from }: Filling): Promise<void> {
  const columns = await list<[table: string, column: string, expression: string]>(server, listGenerated);
  const statements = Array.from(
    Map.groupBy(columns, ([table]) => table),
    ([table, its]) =>
      `ALTER TABLE ONLY ${table} ${its.map(([, column, expression]) => `ALTER ${column} SET EXPRESSION AS (${expression})`).join(", ")};`,
  );
  await asOwner(server, from, statements);
}

/** Drops all checks. @returns them in the order in which they can be created again */
async function takeChecks(server: Server, { databaseName: from }: Filling): Promise<Check[]> {
  const taken: Check[] = [];
  for (;;) {
    const found = await list<Check>(server, listChecks);
    if (found.length === 0) return taken;
    taken.push(...found);
    const drops = found.map(([of, name]) => `ALTER ${of} DROP CONSTRAINT ${name};`);
    await asOwner(server, from, drops);
  }
}

function checkAgain([of, name, definition]: Check): string {
  const add = `ALTER ${of} ADD CONSTRAINT ${name} ${definition}`;
  const attempts = `EXECUTE ${literal(add)}; EXCEPTION WHEN OTHERS THEN EXECUTE ${literal(`${add} NOT VALID`)};`;
  return `DO ${literal(`BEGIN ${attempts} END`)};`;
}
