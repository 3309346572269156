import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { formatId } from "../protocol/ids.ts";
import { installPackages } from "../scripts/lib/docker-engine.ts";
import { succeeds } from "../scripts/lib/command.ts";
import type { Database } from "../scripts/lib/migrate.ts";
import { deriveKey, mintApiKey, sha256Hex } from "../worker/domain/tokens.ts";
import { median } from "./median.ts";
import { startWorkerd, type Storage } from "./workerd.ts";

/**
 * Requests per second of reads with a key, against baselines in the same workerd, by turns: Hono alone, with a socket of its
 * own as the Worker has one and behind Miniflare's router, and a bare route with one Durable Object call and one indexed D1
 * read. Once with the state on disk, as `npm start` ships, and once
 * in memory. Each key may send one request a second, so there are many. Then how long they take when few are sent: 100 a
 * second, by turns.
 */
const keyCount = 8000;
/** After which the memory is told. */
const firstRequests = 100_000;
const seconds = 3;
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 7);
const connections = 16;
const [steadyPerSecond, steadySeconds] = [100, 10];
const siteCount = 20;

if (!(await succeeds("wrk", ["--version"])) && !(await succeeds("sh", ["-c", "command -v wrk"])))
  await installPackages(["wrk"]);

for (const storage of ["disk", "memory"] as const) await measure(storage);

async function measure(storage: Storage): Promise<void> {
  const workerd = await startWorkerd({}, storage);
  const { miniflare, db, siteUrl, port, barePort, routerPort, secretKey, folder, usage } = workerd;
  try {
    const idleMb = usage().pssMb;
    let sent = 0;
    const now = Date.now();
    const accountId = formatId("account", now, randomBytes(10));
    const siteIds = Array.from({ length: siteCount }, () => formatId("site", now, randomBytes(10)));
    const [siteId = ""] = siteIds;
    const bareDb = (await miniflare.getD1Database("DB", "bare")) as unknown as Database;
    await bareDb.batch([
      bareDb.prepare("CREATE TABLE sites (id TEXT PRIMARY KEY, name TEXT, status TEXT, created_at INTEGER)"),
      bareDb.prepare("INSERT INTO sites VALUES (?, 'bench', 'RUNNING', 0)").bind(siteId),
    ]);
    await db.batch([
      db
        .prepare(
          "INSERT INTO accounts (id, name, email, created_at, updated_at) VALUES (?, 'Bench', 'bench@example.com', 0, 0)",
        )
        .bind(accountId),
      ...siteIds.map((id, at) =>
        db
          .prepare(
            "INSERT INTO sites (id, account_id, name, status, deploy_type, port, pack_id, billing_term, slug, webhook_hash, created_at, updated_at) VALUES (?, ?, ?, 'RUNNING', 'image', 3000, 'pack_x', 1, ?, ?, 0, 0)",
          )
          .bind(id, accountId, `bench-${at}`, `bench-${at}`, `none-${at}`),
      ),
    ]);
    const checkKey = deriveKey(secretKey, "api-key-check");
    const keys = await Promise.all(
      Array.from({ length: keyCount }, () => mintApiKey(randomBytes(32), checkKey)),
    );
    for (let at = 0; at < keys.length; at += 500)
      await db.batch(
        keys
          .slice(at, at + 500)
          .map((key) =>
            db
              .prepare(
                "INSERT INTO api_keys (id, account_id, name, hash, start, origin, created_at) VALUES (?, ?, 'bench', ?, 'sk_', 'setup', 0)",
              )
              .bind(formatId("key", now, randomBytes(10)), accountId, sha256Hex(key)),
          ),
      );
    // Each thread of wrk rotates through its own keys, so that none exceeds its limit.
    mkdirSync(join(folder, "lua"));
    writeFileSync(
      join(folder, "lua", "keys.lua"),
      `return {\n${keys.map((key) => `"${key}"`).join(",\n")}\n}\n`,
    );
    const script = join(folder, "lua", "requests.lua");
    const run = (
      at: number,
      path: string,
      host = `127.0.0.1:${at}`,
    ): { requestsPerSecond: number; requests: number; wrong: number } => {
      writeFileSync(
        script,
        `local keys = dofile("${join(folder, "lua", "keys.lua")}")
local at = 0
wrong = 0
function request()
  at = at % #keys + 1
  return wrk.format("GET", "${path}", { ["Host"] = "${host}", ["Authorization"] = "Bearer " .. keys[at] })
end
function response(status) if status ~= 200 then wrong = wrong + 1 end end
local threads = {}
function setup(thread) table.insert(threads, thread) end
function done() for _, thread in ipairs(threads) do io.write("wrong " .. thread:get("wrong") .. "\\n") end end
`,
      );
      const output = execFileSync(
        "wrk",
        ["-t1", `-c${connections}`, `-d${seconds}s`, "-s", script, `http://127.0.0.1:${at}`],
        { encoding: "utf8" },
      );
      return {
        requestsPerSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(output)?.[1]),
        requests: Number(/(\d+) requests in/.exec(output)?.[1]),
        wrong: Number(/wrong (\d+)/.exec(output)?.[1]),
      };
    };
    const reads: readonly [name: string, at: number, path: string, host?: string][] = [
      ["Hono alone", barePort, "/hello"],
      ["Hono alone, behind Miniflare's router", routerPort, "/hello", "bare.test"],
      ["one object call and one D1 read", barePort, `/sites/${siteId}`],
      ["GET /sites/:id", port, `/api/v1/sites/${siteId}`],
      [`GET /sites, ${siteCount} sites`, port, "/api/v1/sites"],
      ["GET /credits", port, "/api/v1/credits"],
    ];
    // Warm up: both are compiled, and every key's guard has read its row from D1 and recorded its first use.
    run(barePort, `/sites/${siteId}`);
    for (let at = 0; at < keys.length; at += connections)
      await Promise.all(
        keys.slice(at, at + connections).map(async (key) => {
          const headers = { Authorization: `Bearer ${key}` };
          const response = await fetch(`${siteUrl}/api/v1/sites/${siteId}`, { headers });
          await response.text();
        }),
      );
    const unused = db.prepare("SELECT id AS name FROM api_keys WHERE last_used_at IS NULL LIMIT 1");
    while ((await unused.all()).results.length > 0) await delay(200);
    for (let first = 0; first < firstRequests;)
      for (const [, ...request] of reads.slice(3)) first += run(...request).requests;
    const afterFirstMb = usage().pssMb;
    const runs = reads.map(([name, ...request]) => ({
      name,
      request,
      rates: [] as number[],
      processorUs: [] as number[],
      wrong: 0,
    }));
    for (let round = 0; round < rounds; round++)
      for (const of of runs) {
        const before = usage().processorMs;
        const { requestsPerSecond, requests, wrong } = run(...of.request);
        of.rates.push(requestsPerSecond);
        of.processorUs.push((1000 * (usage().processorMs - before)) / requests);
        of.wrong += wrong;
        sent += requests;
      }
    const [hono = Number.NaN, routed = Number.NaN] = runs.map(({ rates }) => median(rates));
    console.log(
      `\nRequests a second, state ${storage === "disk" ? "on disk" : "in memory"}, ${keyCount} keys, ${connections} connections, median of ${rounds} × ${seconds} s; workerd had ${idleMb} MB (PSS) at the start, ${afterFirstMb} MB after ${firstRequests} requests to Berth, and ${usage().pssMb} MB after ${sent} more, most of them to the baselines\n`,
    );
    console.log(
      "| | a second | of Hono alone | of Hono behind the router | workerd, µs of a processor each | refused |\n|---|---|---|---|---|---|",
    );
    for (const { name, rates, processorUs, wrong } of runs) {
      const rate = median(rates);
      console.log(
        `| ${name} | ${rate.toFixed(0)} | ${(rate / hono).toFixed(2)} | ${(rate / routed).toFixed(2)} | ${median(processorUs).toFixed(0)} | ${wrong} |`,
      );
    }
    const steady = reads.map(([name, ...request]) => ({
      name,
      request,
      p50: [] as number[],
      p99: [] as number[],
    }));
    for (let round = 0; round < rounds; round++)
      for (const { request, p50, p99 } of steady) {
        const took = (await steadily(request, keys)).toSorted((a, b) => a - b);
        p50.push(took[Math.floor(took.length / 2)] ?? Number.NaN);
        p99.push(took[Math.floor(took.length * 0.99)] ?? Number.NaN);
      }
    const [bareMs = Number.NaN, routedMs = Number.NaN] = steady.map(({ p99 }) => median(p99));
    console.log(
      `\n${steadyPerSecond} requests a second, medians of ${rounds} × ${steadySeconds} s\n\n| | p50, ms | p99, ms | p99 of Hono alone | of Hono behind the router |\n|---|---|---|---|---|`,
    );
    for (const { name, p50, p99 } of steady)
      console.log(
        `| ${name} | ${median(p50).toFixed(1)} | ${median(p99).toFixed(1)} | ${(median(p99) / bareMs).toFixed(2)} | ${(median(p99) / routedMs).toFixed(2)} |`,
      );
  } finally {
    await workerd.dispose();
  }
}

/** How long each of few requests takes, in milliseconds: the next one does not wait for the one before. */
async function steadily(
  [port, path, host = `127.0.0.1:${port}`]: [port: number, path: string, host?: string],
  keys: readonly string[],
): Promise<number[]> {
  const agent = new http.Agent({ keepAlive: true });
  const began = performance.now();
  const all: Promise<number>[] = [];
  for (let at = 0; at < steadyPerSecond * steadySeconds; at++) {
    await delay(Math.max(0, began + (at * 1000) / steadyPerSecond - performance.now()));
    const sentAt = performance.now();
    const headers = { Host: host, Authorization: `Bearer ${keys[at % keys.length]}` };
    all.push(
      new Promise((resolve, reject) => {
        http
          .get({ host: "127.0.0.1", port, path, agent, headers }, (response) =>
            response.resume().on("end", () => resolve(performance.now() - sentAt)),
          )
          .on("error", reject);
      }),
    );
  }
  const took = await Promise.all(all);
  agent.destroy();
  return took;
}
