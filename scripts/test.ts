import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "./lib/bundle.ts";
import { installPackages } from "./lib/docker-engine.ts";
import { leftoversFile } from "./lib/engine-leftovers.ts";
import { fastParts } from "./lib/fast-tests.ts";
import { startEmbeddedService, type EmbeddedService } from "./lib/embedded-service.ts";
import { closingLine, type Counts } from "../test/support/closing-line.ts";

/** Programs that tests run, by the Debian package that has them. */
const tools = {
  // A real browser for the pages, and a reader for the invoices that it prints.
  "/usr/bin/chromium": "chromium",
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
};

type Outcome = { status: number; counts: Counts };

/** The result of a run that did not complete. */
const broken: Counts = { passed: 0, failed: 1, skipped: 0, failures: [] };
const tiers = (...names: string[]) => names.flatMap((name) => ["--project", name]);

/** Runs vitest with these arguments; quiet: its output is shown at the end. A run without counts is a failed one. */
async function runVitest(
  service: EmbeddedService,
  args: readonly string[],
  { quiet } = { quiet: false },
): Promise<Outcome> {
  const countsFile = join(service.stateDirectory, `counts-${randomUUID()}.json`);
  const vitest = spawn(
    join(projectRoot, "node_modules", ".bin", "vitest"),
    ["run", "--reporter=default", "--reporter=./test/support/closing-line.ts", ...args],
    {
      cwd: projectRoot,
      stdio: ["ignore", quiet ? "pipe" : "inherit", quiet ? "pipe" : "inherit"],
      env: { ...process.env, ...service.env, BERTH_COUNTS_FILE: countsFile },
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

/** Tests without an engine, one part after the other. */
async function runFast(service: EmbeddedService): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const part of fastParts) outcomes.push(await runVitest(service, part, { quiet: true }));
  return outcomes;
}

/**
 * Engine tests mostly wait, so compute-bound tests run beside them. End-to-end tests run afterwards and alone,
 * because they measure lost requests.
 */
async function runTiers(service: EmbeddedService): Promise<Outcome[]> {
  const sideBySide = await Promise.all([runVitest(service, tiers("engine")), runFast(service)]);
  return [...sideBySide.flat(), await runVitest(service, tiers("conformance", "e2e"))];
}

/** Every tier, on a service started for it; with arguments, one run of vitest with them. Tests that cannot run fail. */
const given = process.argv.slice(2);
let status = 1;
let counts = broken;
try {
  const missing = Object.entries(tools).filter(([program]) => !existsSync(program));
  if (missing.length > 0) await installPackages(missing.map(([, name]) => name));
  const service = await startEmbeddedService("test", {
    BERTH_START_TIMEOUT_SECONDS: "15",
    BERTH_BUILD_TIMEOUT_SECONDS: "60",
    BERTH_PROBATION_SECONDS: "1",
  });
  const outcomes = given.length > 0 ? [await runVitest(service, given)] : await runTiers(service);
  status = Math.max(...outcomes.map((outcome) => outcome.status));
  const sum = (name: "passed" | "failed" | "skipped") =>
    outcomes.reduce((total, outcome) => total + outcome.counts[name], 0);
  const failures = outcomes.flatMap((outcome) => outcome.counts.failures);
  counts = { passed: sum("passed"), failed: sum("failed"), skipped: sum("skipped"), failures };
  await service.stop();
  const left = JSON.parse(readFileSync(join(service.stateDirectory, leftoversFile), "utf8")) as string[];
  if (left.length > 0) {
    counts.failures.push(`The tests left on the engine: ${left.join(", ")}`);
    counts.failed++;
    status = 1;
  }
} catch (error) {
  console.error(error);
  status = 1;
}
for (const failure of counts.failures) console.error(`failed: ${failure}`);
process.stdout.write(`\n${closingLine(counts)}\n`, () => process.exit(status));
