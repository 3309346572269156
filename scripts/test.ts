import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { projectRoot } from "./lib/project-root.ts";
import { installMissing } from "./lib/docker-engine.ts";
import { leftoversFile } from "./lib/engine-leftovers.ts";
import { memoryFolder } from "./lib/memory-folder.ts";
import { runAgain, type Outcome } from "./lib/run-again.ts";
import { startEmbeddedService, type EmbeddedService } from "./lib/embedded-service.ts";
import { browserPrograms } from "../test/support/browser-programs.ts";
import { closingLine, type Counts } from "../test/support/closing-line.ts";

/** Programs that tests run, by the Debian package that has them. */
const tools = {
  // A real browser for the pages, and a reader for the invoices that it prints.
  ...browserPrograms,
  "/usr/bin/pdftotext": "poppler-utils",
  // Let's Encrypt's test server, for sites' certificates.
  "/usr/bin/pebble": "pebble",
  // A name server, for the faults of domains.
  "/usr/sbin/dnsmasq": "dnsmasq-base",
  // A DNS server whose records follow the sites, and its backend.
  "/usr/sbin/pdns_server": "pdns-server",
  "/usr/lib/x86_64-linux-gnu/pdns/libgsqlite3backend.so": "pdns-backend-sqlite3",
  // Verifies the units that the install script writes; nothing is started.
  "/usr/bin/systemd-analyze": "systemd",
  // Gives a program another time than the machine's.
  "/usr/bin/faketime": "faketime",
  // Machines with networks of their own.
  "/usr/sbin/ip": "iproute2",
  // What berth opens on databases, the shells that it completes in, and what sets its man page.
  "/usr/bin/psql": "postgresql-client",
  "/usr/bin/mariadb": "mariadb-client",
  "/usr/bin/redis-cli": "redis-tools",
  "/usr/bin/zsh": "zsh",
  "/usr/bin/fish": "fish",
  "/usr/bin/groff": "groff-base",
};

/** The result of a run that did not complete. */
const broken: Counts = {
  passed: 0,
  failed: 1,
  skipped: 0,
  failures: ["the run, or a part of it, ended without a result"],
  unplaced: 0,
  failedFiles: [],
  passedFiles: [],
  tookMs: {},
};
const tiers = (...names: string[]) => names.flatMap((name) => ["--project", name]);

/** Runs vitest with these arguments; quiet: its output is shown at the end. A run without counts is a failed one. */
async function runVitest(
  env: Record<string, string>,
  args: readonly string[],
  { quiet } = { quiet: false },
): Promise<Outcome> {
  const countsFile = join(env["TMPDIR"] ?? tmpdir(), `counts-${randomUUID()}.json`);
  const vitest = spawn(
    join(projectRoot, "node_modules", ".bin", "vitest"),
    ["run", "--reporter=default", "--reporter=./test/support/closing-line.ts", ...args],
    {
      cwd: projectRoot,
      stdio: ["ignore", quiet ? "pipe" : "inherit", quiet ? "pipe" : "inherit"],
      env: { ...process.env, ...env, BERTH_COUNTS_FILE: countsFile },
    },
  );
  const end = () => vitest.kill();
  process.once("exit", end);
  let output = "";
  for (const stream of [vitest.stdout, vitest.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => (output += text));
  const status = await new Promise<number>((resolve, reject) => {
    vitest.once("error", reject);
    vitest.once("close", (code) => resolve(code ?? 1));
  });
  process.off("exit", end);
  process.stdout.write(output);
  if (!existsSync(countsFile)) return { status: status || 1, counts: broken };
  const counts = JSON.parse(readFileSync(countsFile, "utf8")) as Counts;
  rmSync(countsFile);
  return { status, counts };
}

/** Tests that failed and then passed; they are named at the end. */
const flaky: string[] = [];

type Options = {
  quiet?: boolean;
  /** The environment of a new service, which has nothing of what a file that failed left on its own. */
  anew?: () => Promise<Record<string, string>>;
};

/** Runs vitest; files that failed are run again. */
async function runTests(
  env: Record<string, string>,
  args: readonly string[],
  { quiet = false, anew = async () => env }: Options = {},
): Promise<Outcome> {
  const outcome = await runAgain(await runVitest(env, args, { quiet }), async (files) =>
    // Where none starts now, the old one may do.
    runVitest(await anew().catch(() => env), ["--no-file-parallelism", ...files]),
  );
  flaky.push(...outcome.flaky);
  return outcome;
}

/** Files that measure how long something takes or is away, or fill a machine; they run alone. */
const measuring = [
  "test/agent/ingress.engine.test.ts",
  "test/e2e/dashboard-log.test.ts",
  // Builds yield to all others: beside them, one that takes all memory or processes comes to its time limit first.
  "test/e2e/hostile.test.ts",
  "test/e2e/swap.test.ts",
];

/** What only a long run shows: `npm run test:all`. */
const long = [
  // A repository of each kind, with a toolchain of its own.
  "test/agent/languages.engine.test.ts",
  // Faults of database servers and of their backups one by one, and names and contents that nobody would choose.
  "test/agent/database-outages.engine.test.ts",
  "test/agent/database-names.engine.test.ts",
  "test/agent/backups.engine.test.ts",
  "test/agent/backups-postgresql.engine.test.ts",
  "test/agent/mysql-backups.engine.test.ts",
  "test/agent/backups-generated.engine.test.ts",
  "test/agent/mysql-generated.engine.test.ts",
  "test/agent/redis-generated.engine.test.ts",
  // Each of the assistant's tools, and each command, on real containers.
  "test/e2e/chat-effects.test.ts",
  "test/e2e/chat-facts.test.ts",
  "test/e2e/cli-json.test.ts",
  // A machine with systemd and an engine of its own.
  "test/e2e/systemd-host.test.ts",
  // Fifty deployments in a row at 400 requests a second.
  "test/e2e/swap.test.ts",
];

/** A quarter of what the simulations try otherwise. */
const fewSeeds = { BERTH_SIMULATION_SECONDS: "15", BERTH_SIMULATION_RUNS: "2500" };

/**
 * Engine tests mostly wait, so compute-bound tests run beside them. End-to-end tests run afterwards, each file with a service of its
 * own, because some kill its agent or its control plane.
 */
async function runTiers(
  first: EmbeddedService,
  startOthers: () => Promise<EmbeddedService[]>,
  anew: () => Promise<Record<string, string>>,
  isLong: boolean,
): Promise<Outcome[]> {
  const later = isLong ? [] : long;
  const excluded = [...measuring, ...later].map((file) => `--exclude=${file}`);
  const engine = runTests(first.env, [...tiers("engine"), ...excluded]);
  const computing = runTests(
    { ...(isLong ? {} : fewSeeds), ...first.env, TMPDIR: memoryFolder() },
    // By default vitest leaves a core free, which is half of two.
    [...tiers("unit", "worker"), `--maxWorkers=${availableParallelism()}`],
    { quiet: true },
  );
  const [others, ...sideBySide] = await Promise.all([
    // Not before: a service takes time of the processors, though nothing uses it.
    Promise.race([engine, computing]).then(startOthers),
    engine,
    computing,
  ]);
  const each = { ...first.env, BERTH_E2E_STATE_DIRS: [first, ...others].map(stateOf).join(delimiter) };
  const alone = measuring.filter((file) => !later.includes(file));
  return [
    ...sideBySide,
    await runTests(each, [...tiers("conformance", "e2e"), ...excluded], { anew }),
    await runTests(first.env, [...tiers("engine", "e2e"), ...alone], { anew }),
  ];
}
const stateOf = ({ stateDirectory }: EmbeddedService): string => stateDirectory;

/**
 * Every tier, on a service started for it, with `--all` also what only a long run shows; with other arguments, one run of vitest with
 * them. Tests that cannot run fail.
 */
const isLong = process.argv[2] === "--all";
const given = process.argv.slice(isLong ? 3 : 2);
let status = 1;
let counts = broken;
try {
  await installMissing(tools);
  const limits = {
    BERTH_START_TIMEOUT_SECONDS: "30",
    BERTH_BUILD_TIMEOUT_SECONDS: "180",
    BERTH_BUILD_MEMORY_MB: "1024",
    BERTH_PROBATION_SECONDS: "1",
  };
  const first = await startEmbeddedService("test", limits);
  const others: EmbeddedService[] = [];
  const startAnother = async () => {
    const another = await startEmbeddedService(`test-${others.length + 2}`, limits, { beside: true });
    others.push(another);
    return another;
  };
  // End-to-end tests wait for a part of their time: four files at a time keep two cores busy.
  const startOthers = async () => [await startAnother(), await startAnother(), await startAnother()];
  const anew = async () => (await startAnother()).env;
  const outcomes =
    given.length > 0 ? [await runVitest(first.env, given)] : await runTiers(first, startOthers, anew, isLong);
  status = Math.max(...outcomes.map((outcome) => outcome.status));
  const sum = (name: "passed" | "failed" | "skipped") =>
    outcomes.reduce((total, outcome) => total + outcome.counts[name], 0);
  const failures = outcomes.flatMap((outcome) => outcome.counts.failures);
  counts = { ...broken, passed: sum("passed"), failed: sum("failed"), skipped: sum("skipped"), failures };
  const left: string[] = [];
  // The first service, which sees what any test left, ends last.
  await Promise.all(others.map((each) => each.stop()));
  await first.stop();
  for (const { stateDirectory } of [...others, first])
    left.push(...(JSON.parse(readFileSync(join(stateDirectory, leftoversFile), "utf8")) as string[]));
  if (left.length > 0) {
    counts.failures.push(`The tests left on the engine: ${left.join(", ")}`);
    counts.failed++;
    status = 1;
  }
} catch (error) {
  console.error(error);
  status = 1;
}
for (const line of flaky) console.error(line);
for (const failure of counts.failures) console.error(`failed: ${failure}`);
process.stdout.write(`\n${closingLine(counts)}\n`, () => process.exit(status));
