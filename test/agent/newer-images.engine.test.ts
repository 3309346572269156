import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openNewerImages } from "../../agent/image-build/newer-images.ts";
import { docker } from "../support/engine.ts";
import { startPrivateEngine, type PrivateEngine } from "../support/private-engine.ts";
import { startRegistry } from "../support/registry.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { TestNetwork } from "../support/test-network.ts";

const folder = temporaryFolder();
const signal = new AbortController().signal;
const built = `berth-test/newer:${process.pid}`;
const network = new TestNetwork();
let registry: Awaited<ReturnType<typeof startRegistry>>;
let own: PrivateEngine;
let base: string;
let time = 0;
const hostsImages = () =>
  openNewerImages(
    {
      engine: own.engine,
      receive: () => Promise.resolve({ signal, end: () => undefined }),
      localImages: [],
      file: join(folder, "pulled.json"),
    },
    () => time,
  );
const ask = (...args: string[]) => docker("--host", `unix://${own.socketPath}`, ...args);

// Agents let this machine's engine reach nothing on its loopback address, so the registry is on another machine's.
beforeAll(async () => {
  registry = await startRegistry();
  const machine = network.addMachine();
  await machine.lead([registry.port]);
  own = await startPrivateEngine(machine);
  base = `127.0.0.1:${registry.port}/berth-test:1`;
});
afterAll(async () => {
  await own.end();
  await network.stop();
  await registry.close();
});

/** What a tenant's own Dockerfile begins with. */
async function buildsOn(): Promise<string> {
  await own.engine.build({
    context: null,
    dockerfile: { name: "Dockerfile", text: `FROM ${base}\nLABEL a=b\n` },
    tag: built,
    labels: {},
    buildArgs: {},
    cacheNamespace: "berth-test-newer",
    secrets: new Map(),
    signal,
    onLine: () => undefined,
  });
  return ask("image", "inspect", "--format", '{{join .Config.Env ","}}', built);
}

it("builds follow a tag that has moved, once a day, and the older image stays for as long as a container uses it", async () => {
  const newer = hostsImages();
  await registry.publish("1", "VERSION=1");
  await newer.pull(base, signal);
  expect([await own.engine.wasPulled(base), await own.engine.wasPulled("berth-test/none:1")]).toEqual([
    true,
    false,
  ]);
  const first = (await own.engine.imageId(base)) ?? "";
  const container = await ask("create", base, "none");
  await registry.publish("1", "VERSION=2");
  await newer.pullDaily([base]);
  expect(await own.engine.imageId(base)).toBe(first);

  time += 24 * 60 * 60_000;
  await newer.pullDaily([base]);
  expect(await buildsOn()).toContain("VERSION=2");
  expect(await own.engine.imageId(first)).toBe(first);

  time += 24 * 60 * 60_000;
  await newer.pullDaily([base]);
  expect(await ask("inspect", "--format", "{{.Image}}", container)).toBe(first);
  await own.engine.removeContainer(container);
  time += 24 * 60 * 60_000;
  await hostsImages().pullDaily([base]);
  expect(await own.engine.imageId(first)).toBeNull();
});

it("a registry that is gone takes nothing away", async () => {
  const before = await own.engine.imageId(base);
  await registry.close();
  time += 24 * 60 * 60_000;
  await hostsImages().pullDaily([base]);
  expect(await own.engine.imageId(base)).toBe(before);
  await expect(hostsImages().pull(base, signal)).rejects.toThrow(String(registry.port));
  expect(await buildsOn()).toContain("VERSION=2");
});
