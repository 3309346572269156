import { randomBytes } from "node:crypto";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { formatId } from "../protocol/ids.ts";
import { systemAccounts } from "../worker/domain/ledger.ts";
import { deriveKey, mintApiKey, sha256Hex } from "../worker/domain/tokens.ts";
import { median } from "./median.ts";
import { startWorkerd } from "./workerd.ts";

/**
 * What `POST /chat` and the first byte of `/chat/stream` take beyond the model's own time, against a model that answers
 * after a fixed time, and beside a plain `GET /sites` in the same workerd. One message at a time, each of another account.
 */
const accounts = 40;
const modelMs = 50;
const pauseMs = 1000;

const model = http.createServer((request, response) => {
  request.resume().on("end", () => {
    setTimeout(() => {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      const choices = [{ delta: { content: "All is well." } }, { delta: {}, finish_reason: "stop" }];
      for (const choice of choices)
        response.write(`data: ${JSON.stringify({ choices: [{ index: 0, ...choice }] })}\n\n`);
      response.end("data: [DONE]\n\n");
    }, modelMs);
  });
});
await new Promise<void>((resolve) => model.listen(0, "127.0.0.1", resolve));
const { port } = model.address() as AddressInfo;
const workerd = await startWorkerd({ MODEL_URL: `http://127.0.0.1:${port}/v1`, MODEL_NAME: "bench" });
try {
  const { db, secretKey, siteUrl } = workerd;
  const now = Date.now();
  const checkKey = deriveKey(secretKey, "api-key-check");
  const keys = await Promise.all(
    Array.from({ length: accounts }, async (_, index) => {
      const [accountId, transferId] = [
        formatId("account", now, randomBytes(10)),
        formatId("transaction", now, randomBytes(10)),
      ];
      const key = await mintApiKey(randomBytes(32), checkKey);
      await db.batch([
        db
          .prepare(
            "INSERT INTO accounts (id, name, email, created_at, updated_at) VALUES (?, 'Bench', ?, 0, 0)",
          )
          .bind(accountId, `bench-${index}@example.com`),
        db
          .prepare(
            "INSERT INTO api_keys (id, account_id, name, hash, start, origin, created_at) VALUES (?, ?, 'bench', ?, 'sk_', 'setup', 0)",
          )
          .bind(formatId("key", now, randomBytes(10)), accountId, sha256Hex(key)),
        db
          .prepare(
            "INSERT INTO ledger_transfers (id, debit_id, credit_id, amount, type, reference, created_at) VALUES (?, ?, ?, 100, 'grant', ?, ?)",
          )
          .bind(transferId, systemAccounts.granted, accountId, transferId, now),
      ]);
      return key;
    }),
  );

  /** Milliseconds to the first byte and to the end. */
  async function timed(key: string, method: string, path: string, body?: object) {
    const began = performance.now();
    const response = await fetch(`${siteUrl}/api/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${key}`, ...(body && { "Content-Type": "application/json" }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    let firstMs = Infinity;
    for await (const _ of response.body ?? []) firstMs = Math.min(firstMs, performance.now() - began);
    if (response.status !== 200) throw new Error(`${method} ${path} answered ${response.status}`);
    return { firstMs, wholeMs: performance.now() - began };
  }
  const each = async (method: string, path: string, body?: object) => {
    const times = [];
    for (const key of keys) times.push(await timed(key, method, path, body));
    await delay(pauseMs);
    return {
      first: median(times.map(({ firstMs }) => firstMs)),
      whole: median(times.map(({ wholeMs }) => wholeMs)),
    };
  };
  const message = { message: "Is everything all right?" };
  // Warm up: everything is compiled, and each key is known to its guard.
  await each("GET", "/sites");
  await each("POST", "/chat", message);
  const plain = await each("GET", "/sites");
  const chat = await each("POST", "/chat", message);
  const stream = await each("POST", "/chat/stream", message);
  const beyond = chat.whole - modelMs;
  console.log(`\nA message to the assistant, model of ${modelMs} ms, median of ${accounts}\n`);
  console.log(
    "| GET /sites | POST /chat beyond the model | ratio | /chat/stream, first byte |\n|---|---|---|---|",
  );
  console.log(
    `| ${plain.whole.toFixed(1)} ms | ${beyond.toFixed(1)} ms | ${(beyond / plain.whole).toFixed(1)} | ${stream.first.toFixed(1)} ms |`,
  );
} finally {
  await workerd.dispose();
  model.close();
}
