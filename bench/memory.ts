import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { keptMs } from "../agent/image-build/readers.ts";
import { formatId } from "../protocol/ids.ts";
import { succeeds } from "../scripts/lib/command.ts";
import { installPackages } from "../scripts/lib/docker-engine.ts";
import { agentIdOf, lines, removeSites } from "../scripts/lib/engine-objects.ts";
import { projectRoot } from "../scripts/lib/project-root.ts";
import { freePort } from "../scripts/lib/state.ts";
import { deriveKey, mintApiKey, sha256Hex } from "../worker/domain/tokens.ts";

/**
 * The memory of `npm start` by process, npm and the ingress included, less the engine and sites: idle, once the agent has ended the
 * process that read the sample site's repository, and once it has answered 100,000 requests with 1,080 keys, each of which has an
 * object of its own in workerd.
 * What several of these processes have of one file is counted once, and divided among them; what others have of it is not subtracted.
 */
const keyCount = 1080;
const requests = 100_000;
/** Below one a second for each key, which is its limit. */
const perSecond = 1000;

if (!(await succeeds("sh", ["-c", "command -v wrk"]))) await installPackages(["wrk"]);
const stateDirectory = join(projectRoot, ".berth", "bench-memory");
rmSync(stateDirectory, { recursive: true, force: true });

const first = await start();
try {
  await delay(keptMs + 10_000);
  const idle = await members(first.id);
  await first.stop();
  const keys = await insertKeys();
  const second = await start();
  try {
    const sent = sendRequests(keys);
    await delay(10_000);
    const after = new Map((await members(second.id)).map(({ name, mb }) => [name, mb]));
    console.log(
      `| process | idle, MB | after ${sent.total} requests, ${sent.wrong} refused, MB |\n|---|---|---|`,
    );
    for (const { name, mb } of idle)
      console.log(`| ${name} | ${mb.toFixed(0)} | ${after.get(name)?.toFixed(0)} |`);
    const sum = (all: Iterable<number>) => [...all].reduce((total, mb) => total + mb, 0);
    const [all, allAfter] = [sum(idle.map(({ mb }) => mb)), sum(after.values())];
    const npm = idle.find(({ name }) => name === "npm")?.mb ?? 0;
    console.log(
      `| all but npm | ${(all - npm).toFixed(0)} | ${(allAfter - (after.get("npm") ?? 0)).toFixed(0)} |`,
    );
    console.log(`| all | ${all.toFixed(0)} | ${allAfter.toFixed(0)} |`);
  } finally {
    await second.stop();
  }
} finally {
  await first.stop();
  await removeSites(kept("hostToken"));
  rmSync(stateDirectory, { recursive: true, force: true });
}

/** As a user does: by the npm and the Node that the machine has. */
async function start(): Promise<{ id: number; stop(): Promise<void> }> {
  const path = (process.env["PATH"] ?? "").split(":").filter((folder) => !folder.includes("node_modules"));
  const flags = ["--state-dir", stateDirectory, "--port", String(await freePort())];
  flags.push("--ingress-port", String(await freePort()));
  const npm = spawn("npm", ["start", "--", ...flags], {
    cwd: projectRoot,
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, PATH: path.join(":") },
  });
  const ended = once(npm, "exit");
  let said = "";
  await new Promise<void>((resolve, reject) => {
    npm.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      said += chunk;
      if (/^ready /m.test(said)) resolve();
    });
    void ended.then(() => reject(new Error(`npm start ended:\n${said}`)));
  });
  return {
    id: npm.pid ?? 0,
    async stop() {
      npm.kill("SIGTERM");
      await ended;
    },
  };
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
async function members(npm: number): Promise<Member[]> {
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
  const [ingress = ""] = await lines(
    "ps",
    "--quiet",
    "--filter",
    `label=berth.ingress=${agentIdOf(kept("hostToken"))}`,
  );
  const [init = ""] = await lines("inspect", "--format", "{{.State.Pid}}", ingress);
  const found = [...family(npm), ...family(Number(init))]
    .map((id) => ({ name: nameOf(id), ...mappedBy(id) }))
    .filter(({ name }) => !/^(?:dockerd|containerd|docker-|runc)/.test(name));
  const ofFile = (file: string) => found.map(({ files }) => files.get(file) ?? 0);
  return found.map(({ name, own, files }) => ({
    name,
    mb:
      [...files].reduce((total, [file, kb]) => {
        const all = ofFile(file);
        return total + (kb * Math.max(...all)) / all.reduce((sum, one) => sum + one, 0);
      }, own) / 1024,
  }));
}

/** In KiB: what a process has by itself, and by file what it has of it (proc_pid_smaps(5)). */
function mappedBy(id: number): { own: number; files: Map<string, number> } {
  const files = new Map<string, number>();
  let [own, resident, file] = [0, 0, ""];
  for (const line of readFileSync(`/proc/${id}/smaps`, "utf8").split("\n")) {
    const [, device, inode] = /^[0-9a-f]+-[0-9a-f]+ \S+ \S+ (\S+) (\d+)/.exec(line) ?? [];
    if (device !== undefined) file = `${device} ${inode}`;
    const [, name, kb = ""] = /^(Rss|Anonymous):\s+(\d+)/.exec(line) ?? [];
    if (name === "Rss") resident = Number(kb);
    if (name !== "Anonymous") continue;
    own += Number(kb);
    if (resident > Number(kb)) files.set(file, (files.get(file) ?? 0) + resident - Number(kb));
  }
  return { own, files };
}

function nameOf(id: number): string {
  const words = readFileSync(`/proc/${id}/cmdline`, "utf8").split("\0");
  const file = words.find((word) => /\.(?:ts|mjs)$/.test(word)) ?? words[0]?.split(" ")[0] ?? "";
  return file.split("/").at(-1) ?? file;
}
