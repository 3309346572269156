import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { openNewerImages } from "../../agent/image-build/newer-images.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});
const hourMs = 60 * 60_000;
const dayMs = 24 * hourMs;
const node = "node:24-bookworm-slim";

/** A host with these images, and a registry. */
function hostWith(here: Record<string, string>, registry: Record<string, string>) {
  const folder = mkdtempSync(join(tmpdir(), "berth-images-"));
  folders.push(folder);
  const images = new Map(Object.entries(here));
  const nameless = new Set<string>();
  const inUse = new Set<string>();
  const asked: string[] = [];
  let time = 0;
  let hangs: Promise<void> | undefined;
  const engine = {
    imageId: (name: string) => Promise.resolve(images.get(name) ?? null),
    // What was made here is named so in these tests.
    wasPulled: (name: string) => Promise.resolve(images.has(name) && !images.get(name)?.startsWith("made")),
    async pullImage(name: string, _login: null, signal: AbortSignal) {
      asked.push(name);
      await hangs;
      signal.throwIfAborted();
      const [before, now] = [images.get(name), registry[name]];
      if (now === undefined) throw new Error("no route to the registry");
      images.set(name, now);
      if (before !== undefined && ![...images.values()].includes(before)) nameless.add(before);
    },
    removeUnnamed(id: string) {
      if (!nameless.has(id)) return Promise.resolve(true);
      return Promise.resolve(!inUse.has(id) && nameless.delete(id));
    },
  };
  const open = () =>
    openNewerImages(
      {
        engine,
        receive: () => Promise.resolve({ signal: new AbortController().signal, end: () => undefined }),
        localImages: ["team/base:1", node],
        file: join(folder, "pulled.json"),
      },
      () => time,
    );
  return {
    images,
    registry,
    nameless,
    inUse,
    asked,
    open,
    newer: open(),
    later: (ms: number) => void (time += ms),
    hang: (until: Promise<void>) => void (hangs = until),
  };
}

describe("a base image that is here", () => {
  it("is pulled again once a day, whatever comes of it and however often the agent starts", async () => {
    const { open, newer, registry, images, asked, later } = hostWith({ [node]: "1" }, {});
    await newer.pullDaily([node, node]);
    await open().pullDaily([node]);
    expect([asked, images.get(node)]).toEqual([[node], "1"]);
    registry[node] = "2";
    later(dayMs - 1);
    await newer.pullDaily([node]);
    expect(images.get(node)).toBe("1");
    later(1);
    await newer.pullDaily([node]);
    expect(images.get(node)).toBe("2");
  });

  it("is not pulled again on the day on which it came", async () => {
    const { newer, asked } = hostWith({}, { "php:8-apache": "1" });
    await newer.pull("php:8-apache", new AbortController().signal);
    await newer.pullDaily(["php:8-apache"]);
    expect(asked).toEqual(["php:8-apache"]);
  });

  it("is pulled by its tag alone, also where the Dockerfile leaves that out", async () => {
    const { newer, asked } = hostWith({ "nginx:latest": "1" }, { "nginx:latest": "2" });
    await newer.pull("docker.io/library/nginx", new AbortController().signal);
    expect(asked).toEqual(["nginx:latest"]);
  });

  it("is left alone where it was made here, is the operator's own, or is not here at all", async () => {
    const here = { [node]: "made", "team/base:1": "1", "other:1": "made" };
    const { newer, asked } = hostWith(here, {
      [node]: "2",
      "team/base:1": "2",
      "other:1": "2",
      "gone:1": "2",
    });
    await newer.pullDaily([node, "team/base:1", "other:1", "gone:1"]);
    expect(asked).toEqual([]);
  });

  it("is left alone where databases start with it: text would be sorted otherwise than in their indexes", async () => {
    const servers = ["postgres:17", "mariadb:11", "redis:8"];
    const { newer, asked } = hostWith(
      Object.fromEntries(servers.map((name) => [name, "1"])),
      Object.fromEntries(servers.map((name) => [name, "2"])),
    );
    const named = [...servers, "docker.io/library/postgres:17"];
    await newer.pullDaily(named);
    expect(asked).toEqual([]);
    for (const name of named) expect(await newer.mayReplace(name)).toBe(false);
  });

  it("is pulled one after another", async () => {
    const { newer, asked, hang } = hostWith({ [node]: "1", "caddy:2": "1" }, { [node]: "2", "caddy:2": "2" });
    const { promise, resolve } = Promise.withResolvers<void>();
    hang(promise);
    const all = Promise.all([newer.pullDaily([node]), newer.pullDaily(["caddy:2"])]);
    await expect.poll(() => asked).toEqual([node]);
    resolve();
    await all;
    expect(asked).toEqual([node, "caddy:2"]);
  });

  it("goes once a newer one has its name, when no build can have found it and no container uses it any more", async () => {
    const { newer, open, registry, nameless, inUse, later } = hostWith({ [node]: "1" }, { [node]: "2" });
    const pulled = async (agent: typeof newer, id: string) => {
      registry[node] = id;
      await agent.pull(node, new AbortController().signal);
      return [...nameless];
    };
    expect(await pulled(newer, "2")).toEqual(["1"]);
    inUse.add("1");
    later(hourMs);
    expect(await pulled(newer, "3")).toEqual(["1", "2"]);
    inUse.clear();
    later(hourMs);
    expect(await pulled(open(), "3")).toEqual([]);
  });
});
