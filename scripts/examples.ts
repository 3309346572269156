import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import * as z from "zod";
import { publishFolder } from "./lib/publish-examples.ts";
import { Expectation, isAsExpected, signIn, tryExample, type Result } from "./lib/try-example.ts";

const usage =
  "Usage: npm run examples -- <folder of repositories> [--expect expectations.json] [--only name,name] [--at-once 2] [--state-dir .berth] [--results results.json] [--keep]";

/** Deploys each folder in a folder, as a repository of its own, through the public API of a running `npm start`. */
const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    expect: { type: "string" },
    only: { type: "string" },
    "at-once": { type: "string", default: "2" },
    "state-dir": { type: "string", default: ".berth" },
    results: { type: "string" },
    keep: { type: "boolean", default: false },
  },
});
const [given] = positionals;
if (given === undefined || positionals.length > 1) fail(usage);
const folder = resolve(given);
const inState = (...names: string[]) => join(resolve(flags["state-dir"]), ...names);
if (!existsSync(inState("local.json")))
  fail(`There is no ${inState("local.json")}: run npm start first, or name its --state-dir.`);

const Local = z.object({ siteUrl: z.url(), baseUrl: z.url(), email: z.string(), password: z.string() });
const Secrets = z.object({ ports: z.object({ git: z.number() }) });
const readJson = (file: string): unknown => JSON.parse(readFileSync(file, "utf8"));
const expectations = z
  .record(z.string(), Expectation)
  .parse(flags.expect === undefined ? {} : readJson(resolve(flags.expect)));
const { ports } = Secrets.parse(readJson(inState("secrets.json")));
const only = flags.only?.split(",");
const names = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !entry.name.startsWith("."))
  .map(({ name }) => name)
  .filter((name) => only === undefined || only.includes(name))
  .toSorted();
if (names.length === 0) fail(`There is no folder to deploy in ${folder}.`);
const unknown = Object.keys(expectations).filter((name) => !existsSync(join(folder, name)));
if (unknown.length > 0) fail(`${flags.expect} names ${unknown.join(", ")}, which are not in ${folder}.`);

const service = await signIn(Local.parse(readJson(inState("local.json"))));
const ending = new AbortController();
process.once("SIGINT", () => {
  process.stderr.write("Deleting the sites that were made …\n");
  ending.abort(new Error("Interrupted"));
});

const results = new Map<string, Result>();
const width = Math.max(...names.map((name) => name.length), "example".length);
const row = (name: string, verdict: string, seconds: string, sentence: string) =>
  process.stdout.write(`${name.padEnd(width)}  ${verdict.padEnd(19)}  ${seconds.padStart(7)}  ${sentence}\n`);
row("example", "verdict", "seconds", "sentence");

const left = [...names];
async function work(): Promise<void> {
  for (let name = left.shift(); name !== undefined && !ending.signal.aborted; name = left.shift()) {
    const path = `try/${basename(folder)}-${name}.git`.replaceAll(/[^\w./-]/g, "-");
    const result = await tryOne(name, path);
    results.set(name, result);
    row(name, result.verdict, result.seconds.toFixed(1), result.sentence);
    if (flags.results !== undefined)
      writeFileSync(flags.results, `${JSON.stringify(Object.fromEntries(results), null, 2)}\n`);
  }
}

async function tryOne(name: string, path: string): Promise<Result> {
  try {
    await publishFolder(join(folder, name), inState("git", path));
  } catch (error) {
    return { verdict: "not tried", seconds: 0, sentence: String(error).replaceAll(/\s+/g, " ") };
  }
  const githubUrl = `127.0.0.1:${ports.git}/${path}`;
  const expected = expectations[name] ?? {};
  return tryExample(service, { name, githubUrl, expected, keep: flags.keep }, ending.signal);
}

const atOnce = Math.max(1, Math.trunc(Number(flags["at-once"])) || 1);
await Promise.all(Array.from({ length: atOnce }, work));

const all = [...results.values()];
const counts = Map.groupBy(all, ({ verdict }) => verdict);
const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const up = median((counts.get("up") ?? []).map(({ seconds }) => seconds));
process.stdout.write(
  `\n${all.length} of ${names.length} tried: ${[...counts].map(([verdict, of]) => `${of.length} ${verdict}`).join(", ")}${up === undefined ? "" : `; up after ${up.toFixed(1)} s (median)`}\n`,
);
process.exitCode = all.length === names.length && all.every(isAsExpected) ? 0 : 1;

function fail(sentence: string): never {
  process.stderr.write(`${sentence}\n`);
  process.exit(2);
}
