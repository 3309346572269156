import { mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg, totalmem } from "node:os";
import { join } from "node:path";
import { run } from "./lib/command.ts";
import { ensureDockerEngine, installMissing } from "./lib/docker-engine.ts";
import { startEmbeddedService } from "./lib/embedded-service.ts";
import { projectRoot } from "./lib/project-root.ts";
import { browserPrograms } from "../test/support/browser-programs.ts";

/**
 * First the Worker's benchmarks and backups, then a host's on a service started for them. Arguments select benchmarks
 * by name. What a run of all prints is also written to bench/RESULTS.md, with the machine, its load and the commit.
 */
const alone = ["startup", "requests", "memory", "chat", "ingress", "webhook", "backups"];
const onService = [
  "deploys",
  "dockerfiles",
  "ten-at-once",
  "first-site",
  "idle",
  "logs",
  "pages",
  // Last: it uses up what an address may sign in.
  "neighbours",
];
/** These run containers without a service that would start the engine. */
const onEngine = ["memory", "ingress", "backups"];
const inBrowser = ["first-site", "pages"];

const named = process.argv.slice(2);
const unknown = named.filter((name) => ![...alone, ...onService].includes(name));
if (unknown.length > 0)
  throw new Error(
    `There is no benchmark ${unknown.join(", ")}: name some of ${[...alone, ...onService].join(", ")}, or none for all`,
  );
const wanted = (name: string) => named.length === 0 || named.includes(name);

const head = (await run("git", ["rev-parse", "--short", "HEAD"], { cwd: projectRoot })).trim();
const isChanged = (await run("git", ["status", "--porcelain"], { cwd: projectRoot })).trim() !== "";
const gibibytes = (totalmem() / 1024 ** 3).toFixed(0);
const machine = `Commit ${head}${isChanged ? " with changes" : ""}, ${new Date().toISOString().slice(0, 10)}, ${availableParallelism()} cores, ${gibibytes} GiB of memory, Node ${process.version}. Compare ratios: absolute figures are this machine's.`;
const results = [`# Results of the last \`npm run bench\`\n\n${machine}\n`];
const load = () => (loadavg()[0] ?? Number.NaN).toFixed(1);

/** What it prints is also kept, and written at once: a later benchmark may fail. */
async function measure(name: string): Promise<void> {
  const before = load();
  const { log } = console;
  const printed: string[] = [];
  console.log = (...what: unknown[]) => {
    log(...what);
    printed.push(what.map(String).join(" "));
  };
  try {
    await import(`../bench/${name}.ts`);
  } catch (error) {
    printed.push(`It failed: ${String(error)}`);
    throw error;
  } finally {
    console.log = log;
    results.push(
      `## ${name}\n\nLoad ${before} before and ${load()} after.\n\n${printed.join("\n").trim()}\n`,
    );
    if (named.length === 0) writeFileSync(join(projectRoot, "bench", "RESULTS.md"), results.join("\n"));
  }
}

if (inBrowser.some(wanted)) await installMissing(browserPrograms);

if (onEngine.some(wanted)) {
  const stateDirectory = join(projectRoot, ".berth", "bench-engine");
  mkdirSync(stateDirectory, { recursive: true });
  const engine = await ensureDockerEngine(stateDirectory);
  try {
    for (const name of alone.filter(wanted)) await measure(name);
  } finally {
    await engine.stop();
  }
} else for (const name of alone.filter(wanted)) await measure(name);

if (onService.some(wanted)) {
  // A host's default interval, not the tests'.
  const service = await startEmbeddedService("bench", { BERTH_SAMPLE_SECONDS: "60" });
  try {
    Object.assign(process.env, service.env);
    for (const name of onService.filter(wanted)) await measure(name);
  } finally {
    await service.stop();
  }
}
