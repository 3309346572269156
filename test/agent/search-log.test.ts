import { expect, it } from "vitest";
import { searchLog } from "../../agent/running/search-log.ts";
import type { SiteLogs } from "../../agent/running/site-log.ts";
import { maxFrameBytes } from "../../protocol/agent/messages.ts";
import { frame } from "../support/engine-frame.ts";

/** One container whose log is these frames. */
const logsOf = (frames: readonly Buffer[], running: boolean): SiteLogs =>
  ({
    engine: {
      listContainers: () => Promise.resolve([{ id: "c".repeat(64) }]),
      inspectContainer: () => Promise.resolve({ env: [], labels: {}, running }),
      streamLog: async function* () {
        yield* frames;
      },
    },
    agentId: "a",
    records: { lastLines: () => [] },
    onStart: () => undefined,
  }) as unknown as SiteLogs;

const search = (frames: readonly Buffer[], running = true) =>
  searchLog(
    logsOf(frames, running),
    "site_x",
    { text: "x", after: null, before: null, limit: 500, masks: [], timeoutMs: 5000 },
    new AbortController().signal,
  );

const at = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, "0")}.000000001Z`;

it("the newest lines that fit into one message are found, however JSON writes what they hold", async () => {
  // Six characters in JSON for each escape.
  const text = `x${"\u001b[m".repeat(5000)}`;
  const lines = Array.from({ length: 60 }, (_, second) => frame(1, `${at(second)} ${text}\n`));
  const found = await search(lines);
  expect(Buffer.byteLength(JSON.stringify(found))).toBeLessThan(maxFrameBytes);
  expect([found.complete, found.lines.at(-1)?.at]).toEqual([false, at(59)]);
  expect(found.lines.length).toBeGreaterThan(10);
});

it("the lines of a damaged log that can be read are found, and it is said that those are not all", async () => {
  const [one, two] = [frame(1, `${at(1)} x 1\n`), frame(1, `${at(2)} x 2\n`)];
  const damage = frame(3, "Error grabbing logs: x\n");
  const { lines, complete } = await search([one, damage, two]);
  expect([lines.map(({ text }) => text), complete]).toEqual([["x 1", "x 2"], false]);
});

it("what a container printed before its end is found without a newline, too", async () => {
  const { lines, complete } = await search([frame(1, `${at(1)} fatal: x`)], false);
  expect([lines.map(({ text }) => text), complete]).toEqual([["fatal: x"], true]);
});
