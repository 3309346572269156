import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { formatId } from "../protocol/ids.ts";
import { succeeds } from "../scripts/lib/command.ts";
import { installPackages } from "../scripts/lib/docker-engine.ts";
import { startEmbeddedService } from "../scripts/lib/embedded-service.ts";
import { removeSites } from "../scripts/lib/engine-objects.ts";
import { projectRoot } from "../scripts/lib/project-root.ts";
import { deriveKey, mintApiKey, sha256Hex } from "../worker/domain/tokens.ts";

/**
 * The memory of `npm start` by process, less the engine and sites: idle, ten seconds after its sample site was deployed, and once it
 * has answered 100,000 requests with 1,080 keys, each of which has an object of its own in workerd. The proportional set size (PSS)
 * counts what processes share once. npm and scripts/run.mjs, which start it otherwise, are not among them.
 */
const keyCount = 1080;
const requests = 100_000;
/** Below one a second for each key, which is its limit. */
const perSecond = 1000;

if (!(await succeeds("sh", ["-c", "command -v wrk"]))) await installPackages(["wrk"]);
const stateDirectory = join(projectRoot, ".berth", "bench-memory");
rmSync(stateDirectory, { recursive: true, force: true });
const start = () =>
  startEmbeddedService("bench-memory", { BERTH_SAMPLE_SECONDS: "60" }, { keepsState: true });

const first = await start();
try {
  await delay(10_000);
  const idle = members();
  await first.stop();
  const keys = await insertKeys();
  const second = await start();
  try {
    const sent = sendRequests(keys);
    await delay(10_000);
    const after = new Map(members().map(({ name, mb }) => [name, mb]));
    console.log(
      `| process | idle, MB | after ${sent.total} requests, ${sent.wrong} refused, MB |\n|---|---|---|`,
    );
    for (const { name, mb } of idle)
      console.log(`| ${name} | ${mb.toFixed(0)} | ${after.get(name)?.toFixed(0)} |`);
    const sum = (all: Iterable<number>) => [...all].reduce((total, mb) => total + mb, 0).toFixed(0);
    console.log(`| all | ${sum(idle.map(({ mb }) => mb))} | ${sum(after.values())} |`);
  } finally {
    await second.stop();
  }
} finally {
  await first.stop();
  await removeSites(kept("hostToken"));
  rmSync(stateDirectory, { recursive: true, force: true });
}

function kept(name: "secretKey" | "hostToken"): string {
  const secrets = JSON.parse(readFileSync(join(stateDirectory, "secrets.json"), "utf8")) as Record<
    string,
    string
  >;
  return secrets[name] ?? "";
}

/** Into the stopped service's record, as the API makes fifty of an account at most. */
async function insertKeys(): Promise<string[]> {
  const folder = join(stateDirectory, "state", "do");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".sqlite"),
  );
  const databases = files.map((name) => new DatabaseSync(join(folder, name)));
  const record = databases.find(
    (one) => one.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'api_keys'").get() !== undefined,
  );
  if (!record) throw new Error(`No database below ${folder} has a table of keys.`);
  const account = record.prepare("SELECT account_id AS id FROM sites LIMIT 1").get() as { id: string };
  const checkKey = deriveKey(kept("secretKey"), "api-key-check");
  const insert = record.prepare(
    "INSERT INTO api_keys (id, account_id, name, hash, start, origin, created_at) VALUES (?, ?, 'bench', ?, 'sk_', 'setup', 0)",
  );
  const keys: string[] = [];
  while (keys.length < keyCount) {
    const key = await mintApiKey(randomBytes(32), checkKey);
    insert.run(formatId("key", Date.now(), randomBytes(10)), account.id, sha256Hex(key));
    keys.push(key);
  }
  for (const one of databases) one.close();
  return keys;
}

/** A site, the list of sites and the credits by turns. */
function sendRequests(keys: readonly string[]): { total: number; wrong: number } {
  const { siteUrl, sampleSite } = JSON.parse(readFileSync(join(stateDirectory, "local.json"), "utf8")) as {
    siteUrl: string;
    sampleSite: { id: string };
  };
  const script = join(stateDirectory, "requests.lua");
  const paths = [`/api/v1/sites/${sampleSite.id}`, "/api/v1/sites", "/api/v1/credits"];
  writeFileSync(
    script,
    `local keys = {\n${keys.map((key) => `"${key}"`).join(",\n")}\n}
local paths = {${paths.map((path) => `"${path}"`).join(", ")}}
local at = 0
wrong = 0
function request()
  at = at + 1
  return wrk.format("GET", paths[at % #paths + 1], { ["Authorization"] = "Bearer " .. keys[at % #keys + 1] })
end
function delay() return ${Math.round((1000 * 16) / perSecond)} end
function response(status) if status ~= 200 then wrong = wrong + 1 end end
local threads = {}
function setup(thread) table.insert(threads, thread) end
function done() for _, thread in ipairs(threads) do io.write("wrong " .. thread:get("wrong") .. "\\n") end end
`,
  );
  let [total, wrong] = [0, 0];
  while (total < requests) {
    const output = execFileSync("wrk", ["-t1", "-c16", "-d10s", "-s", script, siteUrl], {
      encoding: "utf8",
    });
    total += Number(/(\d+) requests in/.exec(output)?.[1]);
    wrong += Number(/wrong (\d+)/.exec(output)?.[1]);
  }
  return { total, wrong };
}

type Member = { name: string; mb: number };
function members(): Member[] {
  const parentOf = new Map<number, number>();
  for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry)))
    // A process may end meanwhile.
    try {
      const fields = readFileSync(`/proc/${name}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
      parentOf.set(Number(name), Number(fields[1]));
    } catch {
      continue;
    }
  const childrenOf = (id: number): number[] =>
    [...parentOf].filter(([, parent]) => parent === id).map(([child]) => child);
  const family = (id: number): number[] => [id, ...childrenOf(id).flatMap(family)];
  return family(Number(readFileSync(join(stateDirectory, "start.pid"), "utf8")))
    .map((id) => ({ name: nameOf(id), mb: pssMb(id) }))
    .filter(({ name }) => !/^(?:dockerd|containerd|docker-proxy|runc)/.test(name));
}

function pssMb(id: number): number {
  return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${id}/smaps_rollup`, "utf8"))?.[1]) / 1024;
}

function nameOf(id: number): string {
  const words = readFileSync(`/proc/${id}/cmdline`, "utf8").split("\0");
  const file = words.find((word) => /\.(?:ts|mjs)$/.test(word)) ?? words[0] ?? "";
  return file.split("/").at(-1) ?? file;
}
