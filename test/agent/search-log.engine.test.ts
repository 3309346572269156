import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { emptyLabels, label } from "../../agent/docker/labels.ts";
import { siteLabels } from "../../agent/docker/specs.ts";
import { searchLog } from "../../agent/running/search-log.ts";
import type { SiteLogs } from "../../agent/running/site-log.ts";
import { engine } from "../support/engine.ts";

const agentId = `test${randomBytes(6).toString("hex")}`;
const siteId = `site_${randomBytes(13).toString("hex").padEnd(27, "0").slice(0, 27)}`;
const { signal } = new AbortController();
const kept = { at: "2026-01-01T00:00:01.000000001Z", stream: "stderr" as const, text: "Gone: NEEDLE 0" };
const logs: SiteLogs = {
  engine,
  agentId,
  records: { lastLines: () => [{ containerId: "gone", lines: [{ ...kept, text: "other" }, kept] }] },
  onStart: () => undefined,
};
const search = (part: Partial<Parameters<typeof searchLog>[2]> = {}) =>
  searchLog(
    logs,
    siteId,
    { text: "needle", after: null, before: null, limit: 100, masks: [], timeoutMs: 15_000, ...part },
    signal,
  );
const ids: string[] = [];

async function started(name: string, program: string): Promise<string> {
  const id = await engine.createContainer({
    name: `berth-${agentId}-${name}`,
    Image: "node:24-bookworm-slim",
    Cmd: ["node", "-e", program],
    Env: ["TOKEN=needle-canary"],
    Labels: {
      ...emptyLabels,
      ...siteLabels(siteId),
      [label.agent]: agentId,
      [label.secrets]: "TOKEN",
      [label.config]: name,
    },
    HostConfig: {},
  });
  ids.push(id);
  await engine.startContainer(id);
  return id;
}

/** Ends after it has printed. */
async function ended(name: string, program: string): Promise<void> {
  await engine.waitForExit(await started(name, program), signal);
}

beforeAll(async () => {
  const many = `for (let i = 1; i <= 20000; i++) console.log(i % 1000 ? "hay " + i : "\\u001b[31mNeed\\u001b[0mle " + i);`;
  await ended("one", `${many} console.error("secret " + process.env.TOKEN)`);
  await ended("two", `console.log("the last needle")`);
  const quiet = await started("quiet", `console.log("started"); setInterval(() => {}, 1e6)`);
  await vi.waitUntil(async () => (await engine.lastLines(quiet, 1)).length > 0, 10_000);
});
afterAll(async () => {
  for (const id of ids) await engine.removeContainer(id);
});

it("finds a text in whole logs of all containers and what is kept of others, in their order, whatever its case", async () => {
  const { lines, complete } = await search();
  expect(complete).toBe(true);
  expect(lines.length).toBe(22);
  expect(lines[0]).toEqual(kept);
  expect(lines[1]?.text).toContain("1000");
  expect(lines.at(-1)?.text).toBe("the last needle");
});

it("reads the log of a container that runs up to now, without waiting for its next line", async () => {
  const { lines, complete } = await search({ text: "started" });
  expect([lines.map(({ text }) => text), complete]).toEqual([["started"], true]);
});

it("finds no secret, and says when there are older lines", async () => {
  expect(await search({ text: "canary" })).toEqual({ lines: [], complete: true });
  const { lines, complete } = await search({ limit: 2 });
  expect([complete, lines.length, lines.at(-1)?.text]).toEqual([false, 2, "the last needle"]);
});

it("finds only what was written between two times", async () => {
  const { lines } = await search();
  const [from, to] = [lines[5]?.at ?? "", lines[8]?.at ?? ""];
  expect((await search({ after: from, before: to })).lines).toEqual(lines.slice(5, 8));
  expect((await search({ before: "2026-01-01T00:00:01Z" })).lines).toEqual([]);
});

it("says that it did not look through everything when the time did not suffice", async () => {
  expect((await search({ timeoutMs: 1 })).complete).toBe(false);
});
