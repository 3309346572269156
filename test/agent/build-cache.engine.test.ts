import { randomBytes } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import type { Readable } from "node:stream";
import { json } from "node:stream/consumers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { sendingStream } from "../../agent/docker/send-files.ts";
import { openBuildCache } from "../../agent/isolation/build-cache.ts";
import { startPrivateEngine, type PrivateEngine } from "../support/private-engine.ts";

let own: PrivateEngine;
const megabyte = 1024 ** 2;

beforeAll(async () => {
  own = await startPrivateEngine();
});
afterAll(() => own.end());

/** What is in images is theirs. */
async function cacheBytes(): Promise<number> {
  const [response] = (await once(
    http.get({ socketPath: own.socketPath, path: "/system/df" }),
    "response",
  )) as [Readable];
  const { BuildCache } = (await json(response)) as { BuildCache: { Size: number; Shared: boolean }[] };
  return BuildCache.reduce((sum, { Size, Shared }) => sum + (Shared ? 0 : Size), 0);
}

/** Builds an image of this many megabytes, with a cache that no other build shares. */
async function build(tag: string, megabytes: number): Promise<void> {
  const from = randomBytes(megabytes * megabyte);
  const bytes = from.length;
  await own.engine.build({
    context: () =>
      sendingStream([
        { path: "file", type: "file", permissions: 0o644, modifiedMs: Date.now(), bytes, from },
      ]),
    dockerfile: {
      name: "Dockerfile",
      text: "FROM scratch\nCOPY file /\n",
    },
    tag,
    labels: {},
    buildArgs: {},
    cacheNamespace: tag,
    secrets: new Map(),
    signal: new AbortController().signal,
    onLine: () => undefined,
  });
}

it("the build cache is bounded, from its oldest on, and images stay", async () => {
  const cache = openBuildCache({
    engine: own.engine,
    disk: () => Promise.resolve(null),
    maxMb: 40,
    minFreeDiskMb: null,
  });
  for (const tag of ["one:1", "two:1", "three:1", "four:1", "five:1"]) await build(tag, 14);
  const before = await cacheBytes();
  expect(before).toBeGreaterThan(60 * megabyte);
  cache.buildBegins();
  await cache.buildEnds();
  const after = await cacheBytes();
  expect(after).toBeLessThanOrEqual(40 * megabyte);
  expect(after).toBeGreaterThan(0);
  for (const tag of ["one:1", "five:1"]) expect(await own.engine.imageId(tag)).not.toBeNull();
});
