import http from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { launch, local, remove, Repository, request, until, type Files } from "../test/e2e/service.ts";
import { askApart } from "./ask-apart.ts";

/**
 * A site that writes numbered lines of 72 bytes at a steady rate, and one follower of its log through the public API, in turns with the
 * same follower of a quiet log. Every line must arrive, or be counted in a line that says how many are missing.
 */
const rates = (process.env["BENCH_LOG_RATES"] ?? "5000,20000,50000").split(",").map(Number);
const seconds = Number(process.env["BENCH_SECONDS"] ?? 20);
const lineBytes = 72;

/** `/write?rate&seconds` writes so many lines a second. They begin with `n=` and their number, from 1. */
const writer: Files = {
  Dockerfile: "FROM node:24-bookworm-slim\nCOPY server.js .\nCMD exec node server.js\n",
  "server.js": `
const { writeSync } = require("node:fs");
require("node:http").createServer((request, response) => {
  const url = new URL(request.url, "http://x");
  const rate = Number(url.searchParams.get("rate")), total = rate * Number(url.searchParams.get("seconds"));
  const startedMs = performance.now();
  let n = 0;
  const write = () => {
    const due = Math.min(total, Math.floor(((performance.now() - startedMs) / 1000) * rate));
    while (n < due) {
      let text = "";
      for (let i = 0; i < 500 && n < due; i++) text += ("n=" + String(++n).padStart(9, "0") + " ").padEnd(${lineBytes - 1}, "x") + "\\n";
      for (let rest = Buffer.from(text); rest.length > 0;)
        try { rest = rest.subarray(writeSync(1, rest)); } catch (error) { if (error.code !== "EAGAIN") throw error; }
    }
    if (n < total) setTimeout(write, 5);
    else console.log("written in " + ((performance.now() - startedMs) / 1000).toFixed(1) + " s");
  };
  if (total > 0) write();
  response.end("ok");
}).listen(process.env.PORT || 3000);
`,
};

const site = await launch({ githubUrl: new Repository(writer).address, packId: process.env["BENCH_PACK"] });
if (site.status !== "RUNNING") throw new Error(`The writer is ${site.status}`);

const quantile = (values: number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ??
  Number.NaN;

type Seen = {
  received: number;
  leftOut: number;
  gaps: number;
  misplaced: number;
  last: number;
  took: string;
};

/** Counts without parsing more than it must: what it takes is not what is measured. */
function follow() {
  const seen: Seen = { received: 0, leftOut: 0, gaps: 0, misplaced: 0, last: 0, took: "" };
  let rest = "";
  const url = `${local.baseUrl}/sites/${site.id}/logs?follow=1&tail=0`;
  const outgoing = http.get(url, { headers: { Authorization: `Bearer ${local.apiKey}` } }, (response) => {
    response.setEncoding("utf8").on("data", (chunk: string) => {
      const parts = (rest + chunk).split("\n\n");
      rest = parts.pop() ?? "";
      for (const part of parts) {
        const number = part.indexOf('"text":"n=');
        if (number >= 0) {
          const n = Number(part.slice(number + 10, number + 19));
          seen.received++;
          if (n !== seen.last + 1) seen.misplaced++;
          seen.last = n;
          continue;
        }
        const left = Number(/"leftOut":(\d+)/.exec(part)?.[1] ?? 0);
        if (left > 0) seen.gaps++;
        seen.leftOut += left;
        seen.last += left;
        seen.took = /written in ([\d.]+) s/.exec(part)?.[1] ?? seen.took;
      }
    });
  });
  outgoing.on("error", () => undefined);
  return { seen, stop: () => outgoing.destroy() };
}

try {
  console.log(
    "\n| lines/s | written in, s | all heard after, s | received/s | received | left out | gaps | out of place | unaccounted | /health p50, ms | p99 |\n|---|---|---|---|---|---|---|---|---|---|---|",
  );
  for (const rate of [0, ...rates]) {
    const { seen, stop } = follow();
    await delay(1000);
    const stopHealth = askApart(`${local.siteUrl}/health`, 50);
    const startedMs = performance.now();
    await request(`${site.url}/write?rate=${rate}&seconds=${seconds}`);
    const total = rate * seconds;
    if (total === 0) await delay(seconds * 1000);
    else
      await until(
        () => Promise.resolve(seen),
        ({ received, leftOut }) => received + leftOut >= total,
        120_000,
      ).catch(() => undefined);
    const tookMs = performance.now() - startedMs;
    await delay(1000);
    const { tookMs: waits } = await stopHealth();
    stop();
    const { received, leftOut, gaps, misplaced, took } = seen;
    const figures = [quantile(waits, 0.5), quantile(waits, 0.99)].map((ms) => ms.toFixed(1));
    console.log(
      `| ${[rate, took, (tookMs / 1000).toFixed(1), Math.round(received / (tookMs / 1000)), received, leftOut, gaps, misplaced, total - received - leftOut, ...figures].join(" | ")} |`,
    );
  }
} finally {
  await remove(site.id);
}
