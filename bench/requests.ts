import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { formatId } from "../protocol/ids.ts";
import { installPackages } from "../scripts/lib/docker-engine.ts";
import { succeeds } from "../scripts/lib/command.ts";
import { deriveKey, mintApiKey, sha256Hex } from "../worker/domain/tokens.ts";
import { median, startWorkerd } from "./workerd.ts";

/**
 * Requests per second of `GET /sites/:id` with a key, against a bare Hono route with one Durable Object call and one
 * indexed D1 read, in alternation in the same workerd. Each key may send one request a second, so there are many.
 */
const keyCount = 1000;
const seconds = 3;
const rounds = 7;
const connections = 32;

if (!(await succeeds("wrk", ["--version"])) && !(await succeeds("sh", ["-c", "command -v wrk"])))
  await installPackages(["wrk"]);

const workerd = await startWorkerd();
const { miniflare, db, port, secretKey, folder } = workerd;
try {
  const now = Date.now();
  const [accountId, siteId] = [
    formatId("account", now, randomBytes(10)),
    formatId("site", now, randomBytes(10)),
  ];
  await db.batch([
    db
      .prepare(
        "INSERT INTO accounts (id, name, email, created_at, updated_at) VALUES (?, 'Bench', 'bench@example.com', 0, 0)",
      )
      .bind(accountId),
    db
      .prepare(
        "INSERT INTO sites (id, account_id, name, status, deploy_type, port, pack_id, billing_term, slug, webhook_hash, created_at, updated_at) VALUES (?, ?, 'bench', 'RUNNING', 'image', 3000, 'pack_x', 1, 'bench', 'none', 0, 0)",
      )
      .bind(siteId, accountId),
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
  const run = (host: string, path: string): { requestsPerSecond: number; wrong: number } => {
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
      ["-t1", `-c${connections}`, `-d${seconds}s`, "-s", script, `http://127.0.0.1:${port}`],
      { encoding: "utf8" },
    );
    return {
      requestsPerSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(output)?.[1]),
      wrong: Number(/wrong (\d+)/.exec(output)?.[1]),
    };
  };
  const [oursRates, bareRates]: [number[], number[]] = [[], []];
  let wrong = 0;
  // Warm up: both are compiled, and every key's guard has read its row from D1 and recorded its first use.
  run("bare.test", `/sites/${siteId}`);
  for (let at = 0; at < keys.length; at += connections)
    await Promise.all(
      keys.slice(at, at + connections).map(async (key) => {
        const headers = { Authorization: `Bearer ${key}` };
        const response = await miniflare.dispatchFetch(`http://berth.test/api/v1/sites/${siteId}`, {
          headers,
        });
        await response.text();
      }),
    );
  const unused = db.prepare("SELECT id AS name FROM api_keys WHERE last_used_at IS NULL LIMIT 1");
  while ((await unused.all()).results.length > 0) await delay(200);
  for (let round = 0; round < rounds; round++) {
    bareRates.push(run("bare.test", `/sites/${siteId}`).requestsPerSecond);
    const own = run("berth.test", `/api/v1/sites/${siteId}`);
    oursRates.push(own.requestsPerSecond);
    wrong += own.wrong;
  }
  const [own, base] = [median(oursRates), median(bareRates)];
  console.log(
    `\nRequests a second, ${keyCount} keys, ${connections} connections, median of ${rounds} × ${seconds} s\n`,
  );
  console.log("| bare route | GET /sites/:id | ratio | refused |\n|---|---|---|---|");
  console.log(`| ${base.toFixed(0)} | ${own.toFixed(0)} | ${(own / base).toFixed(2)} | ${wrong} |`);
} finally {
  await workerd.dispose();
}
