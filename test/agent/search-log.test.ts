import { expect, it, vi } from "vitest";
import { label } from "../../agent/docker/labels.ts";
import { searchLog } from "../../agent/running/search-log.ts";
import type { SiteLogs } from "../../agent/running/site-log.ts";
import { maxFrameBytes } from "../../protocol/agent/messages.ts";
import { frame } from "../support/engine-frame.ts";

/** One container whose log is these frames. */
const logsOf = (frames: readonly Buffer[], running: boolean): SiteLogs =>
  ({
    engine: {
      listContainers: () => Promise.resolve([{ id: "c".repeat(64), labels: {} }]),
      inspectContainer: () => Promise.resolve({ env: [], labels: {}, running }),
      streamLog: async function* () {
        yield* frames;
      },
    },
    agentId: "a",
    records: { lastLines: () => [] },
    onStart: () => undefined,
  }) as unknown as SiteLogs;

const search = (logs: SiteLogs) =>
  searchLog(
    logs,
    "site_x",
    { text: "x", after: null, before: null, limit: 500, masks: [], timeoutMs: 5000 },
    new AbortController().signal,
  );

const at = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, "0")}.000000001Z`;

it("the newest lines that fit into one message are found, however JSON writes what they hold", async () => {
  // Six characters in JSON for each escape.
  const text = `x${"\u001b[m".repeat(5000)}`;
  const lines = Array.from({ length: 60 }, (_, second) => frame(1, `${at(second)} ${text}\n`));
  const found = await search(logsOf(lines, true));
  expect(Buffer.byteLength(JSON.stringify(found))).toBeLessThan(maxFrameBytes);
  expect([found.complete, found.lines.at(-1)?.at]).toEqual([false, at(59)]);
  expect(found.lines.length).toBeGreaterThan(10);
});

it("the lines of a damaged log that can be read are found, and it is said that those are not all", async () => {
  const [one, two] = [frame(1, `${at(1)} x 1\n`), frame(1, `${at(2)} x 2\n`)];
  const damage = frame(3, "Error grabbing logs: x\n");
  const { lines, complete } = await search(logsOf([one, damage, two], true));
  expect([lines.map(({ text }) => text), complete]).toEqual([["x 1", "x 2"], false]);
});

it("what a container printed before its end is found without a newline, too", async () => {
  const { lines, complete } = await search(logsOf([frame(1, `${at(1)} fatal: x`)], false));
  expect([lines.map(({ text }) => text), complete]).toEqual([["fatal: x"], true]);
});

it("the lines kept of a container that is removed before its log is read are found, and that others may be missing is said", async () => {
  const { engine, ...rest } = logsOf([], false);
  const streamLog = () => {
    throw new Error("No such container");
  };
  const lastLines = () => [
    { containerId: "c".repeat(64), lines: [1, 2].map((second) => ({ at: at(second), text: `x ${second}` })) },
  ];
  const logs = { ...rest, engine: { ...engine, streamLog }, records: { lastLines } } as unknown as SiteLogs;
  const { lines, complete } = await search(logs);
  expect([lines.map(({ text }) => text), complete]).toEqual([["x 1", "x 2"], false]);
});

it("a search on which the engine hangs holds up its account's others no longer than it may take, and one that has no time left says so", async () => {
  const logs = (isHanging: boolean) => {
    const { engine, ...rest } = logsOf([frame(1, `${at(1)} x\n`)], true);
    const hung = isHanging && { inspectContainer: () => new Promise(() => undefined) };
    const listContainers = () => Promise.resolve([{ id: "c", labels: { [label.account]: "acc_hung" } }]);
    return { ...rest, engine: { ...engine, ...hung, listContainers } } as unknown as SiteLogs;
  };
  const searched = (isHanging: boolean, timeoutMs: number) =>
    searchLog(
      logs(isHanging),
      "site_x",
      { text: "x", after: null, before: null, limit: 1, masks: [], timeoutMs },
      new AbortController().signal,
    );
  const [hung, next, last] = [searched(true, 20), searched(false, 10), searched(false, 5000)];
  await expect(next).rejects.toThrow("Other searches of this account's logs are running");
  expect((await hung).complete).toBe(false);
  expect((await last).lines).toHaveLength(1);
});

it("an account's searches are made one after the other, and no other account waits for them", async () => {
  const begun: string[] = [];
  const first = Promise.withResolvers<void>();
  const accountOf = (siteId: string) => (siteId === "site_other" ? "acc_other" : "acc_one");
  const searched = (siteId: string) => {
    const engine = {
      listContainers: () => Promise.resolve([{ id: siteId, labels: { [label.account]: accountOf(siteId) } }]),
      inspectContainer: () => Promise.resolve({ env: [], labels: {}, running: true }),
      async *streamLog() {
        begun.push(siteId);
        if (siteId === "site_first") await first.promise;
        yield frame(1, `${at(1)} x of ${siteId}\n`);
      },
    };
    const logs = { ...logsOf([], true), engine } as unknown as SiteLogs;
    const asked = { text: "x", after: null, before: null, limit: 1, masks: [], timeoutMs: 5000 };
    return searchLog(logs, siteId, asked, new AbortController().signal);
  };
  const all = ["site_first", "site_second", "site_other"].map(searched);
  // Asked for after the second.
  await vi.waitUntil(() => begun.includes("site_other"));
  expect(begun).toEqual(["site_first", "site_other"]);
  first.resolve();
  const found = await Promise.all(all);
  expect(found.map(({ lines }) => lines[0]?.text)).toEqual([
    "x of site_first",
    "x of site_second",
    "x of site_other",
  ]);
});
