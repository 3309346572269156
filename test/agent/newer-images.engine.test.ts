import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openNewerImages } from "../../agent/image-build/newer-images.ts";
import { docker, engine } from "../support/engine.ts";
import { startRegistry } from "../support/registry.ts";

const folder = mkdtempSync(join(tmpdir(), "berth-newer-"));
const signal = new AbortController().signal;
const built = `berth-test/newer:${process.pid}`;
let registry: Awaited<ReturnType<typeof startRegistry>>;
let base: string;
let time = 0;
const hostsImages = () =>
  openNewerImages(
    {
      engine,
      receive: () => Promise.resolve({ signal, end: () => undefined }),
      localImages: [],
      file: join(folder, "pulled.json"),
    },
    () => time,
  );
const held: string[] = [];
const ids: string[] = [];

beforeAll(async () => {
  registry = await startRegistry();
  base = `${registry.host}/berth-test:1`;
});
afterAll(async () => {
  for (const container of held) await engine.removeContainer(container);
  for (const image of [built, base, ...ids]) await engine.removeImage(image);
  await registry.close();
  rmSync(folder, { recursive: true });
});

/** What a tenant's own Dockerfile begins with. */
async function buildsOn(): Promise<string> {
  await engine.build({
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
  return docker("image", "inspect", "--format", '{{join .Config.Env ","}}', built);
}

it("builds follow a tag that has moved, once a day, and the older image stays for as long as a container uses it", async () => {
  const newer = hostsImages();
  await registry.publish("1", "VERSION=1");
  await newer.pull(base, signal);
  expect([await engine.wasPulled(base), await engine.wasPulled("berth-test/none:1")]).toEqual([true, false]);
  const first = (await engine.imageId(base)) ?? "";
  ids.push(first);
  held.push(await docker("create", base, "none"));
  await registry.publish("1", "VERSION=2");
  await newer.pullDaily([base]);
  expect(await engine.imageId(base)).toBe(first);

  time += 24 * 60 * 60_000;
  await newer.pullDaily([base]);
  expect(await buildsOn()).toContain("VERSION=2");
  expect(await engine.imageId(first)).toBe(first);

  time += 24 * 60 * 60_000;
  await newer.pullDaily([base]);
  expect(await docker("inspect", "--format", "{{.Image}}", held[0] ?? "")).toBe(first);
  await engine.removeContainer(held.pop() ?? "");
  time += 24 * 60 * 60_000;
  await hostsImages().pullDaily([base]);
  expect(await engine.imageId(first)).toBeNull();
});

it("a registry that is gone takes nothing away", async () => {
  const before = await engine.imageId(base);
  await registry.close();
  time += 24 * 60 * 60_000;
  await hostsImages().pullDaily([base]);
  expect(await engine.imageId(base)).toBe(before);
  await expect(hostsImages().pull(base, signal)).rejects.toThrow(/refused/);
  expect(await buildsOn()).toContain("VERSION=2");
});
