import { describe, expect, it } from "vitest";
import type { BuildRequest } from "../../agent/docker/buildkit.ts";
import { detect } from "../../agent/image-build/detect/index.ts";
import { generateDockerfile } from "../../agent/image-build/dockerfile/index.ts";
import { withSharedBases, type SharedBase } from "../../agent/image-build/dockerfile/shared.ts";
import { openSharedBases } from "../../agent/image-build/shared-bases.ts";
import { sourcesOf } from "../support/sources.ts";

const php: SharedBase = { kind: "php", image: "php:8-apache" };
const python: SharedBase = { kind: "python", image: "python:3.13-slim-bookworm" };

/** An engine that keeps what is built, each once `finish` is called. */
function host() {
  const images = new Map([
    [php.image, "sha256:1"],
    [python.image, "sha256:2"],
  ]);
  const builds: { request: BuildRequest; text: string; finish(error?: Error): void }[] = [];
  let time = 0;
  const engine = {
    imageId: (name: string) => Promise.resolve(images.get(name) ?? null),
    imageTags: (repository: string) =>
      Promise.resolve([...images.keys()].filter((name) => name.startsWith(`${repository}:`))),
    removeImage: (name: string) => Promise.resolve(void images.delete(name)),
    async build(request: BuildRequest) {
      const { text } = request.dockerfile;
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const finish = (error?: Error) => (error === undefined ? resolve() : reject(error));
      builds.push({ request, text, finish });
      await promise;
      images.set(request.tag, "sha256:made");
    },
  };
  const never = new AbortController().signal;
  const shared = openSharedBases(
    {
      engine,
      enter: () => Promise.resolve({ signal: never, end: () => undefined }),
      repository: "berth.invalid/shared",
      buildCaFile: null,
    },
    () => time,
  );
  const lines: string[] = [];
  return {
    images,
    builds,
    lines,
    later: (ms: number) => void (time += ms),
    ask: (base: SharedBase, signal = never) =>
      shared(base, { signal, log: (text: string) => void lines.push(text) }),
    begun: (count: number) => expect.poll(() => builds.length).toBe(count),
  };
}

describe("what all sites share of a base image", () => {
  it("is made once, for all who need it, of our own steps alone", async () => {
    const { ask, builds, begun, lines } = host();
    const all = [ask(php), ask(php)];
    await begun(1);
    builds[0]?.finish();
    const [one, other] = await Promise.all(all);
    expect(one).toMatch(/^berth\.invalid\/shared:php-[0-9a-f]{24}-[0-9a-f]{24}$/);
    expect([other, await ask(php)]).toEqual([one, one]);
    expect(builds).toHaveLength(1);
    expect(builds[0]?.text).toMatch(/FROM php:8-apache\nRUN .*docker-php-ext-install mysqli/s);
    expect(builds[0]?.request).toMatchObject({
      buildArgs: {},
      secrets: new Map(),
      labels: { "berth.managed": "true" },
    });
    expect(lines.join("\n")).toMatch(/this happens once\.\n[^]*waiting for it\./);
  });

  it("is made one at a time", async () => {
    const { ask, builds, begun } = host();
    const all = [ask(php), ask(python)];
    await begun(1);
    builds[0]?.finish();
    await begun(2);
    builds[1]?.finish();
    expect(await Promise.all(all)).toEqual([
      expect.stringContaining("php-"),
      expect.stringContaining("python-"),
    ]);
  });

  it("is made anew where it is gone, and of a newer base image, beside the older until no build has that any more", async () => {
    const { ask, builds, begun, images, later } = host();
    const made = async (count: number) => {
      const asked = ask(php);
      await begun(count);
      builds[count - 1]?.finish();
      return asked;
    };
    const first = await made(1);
    images.delete(first ?? "");
    expect(await made(2)).toBe(first);
    images.set(php.image, "sha256:newer");
    const second = await made(3);
    expect(second).not.toBe(first);
    // A build that waits for its turn was given its name.
    expect([...images.keys()]).toEqual([php.image, python.image, first, second]);
    later(60 * 60_000);
    expect(await ask(php)).toBe(second);
    expect([...images.keys()]).toEqual([php.image, python.image, second]);
  });

  it("that cannot be made is left to the build itself, and tried again after a while", async () => {
    const { ask, builds, begun, later, lines } = host();
    const asked = ask(php);
    await begun(1);
    builds[0]?.finish(new Error("no mirror"));
    expect(await asked).toBeNull();
    expect(lines.at(-1)).toMatch(/part of this build/);
    expect(await ask(php)).toBeNull();
    expect(builds).toHaveLength(1);
    later(10 * 60_000);
    const again = ask(php);
    await begun(2);
    builds[1]?.finish();
    expect(await again).not.toBeNull();
  });

  it("is made on, though the deployment that waits for it is cancelled", async () => {
    const { ask, builds, begun } = host();
    const abort = new AbortController();
    const asked = ask(php, abort.signal);
    await begun(1);
    abort.abort(new Error("cancelled"));
    await expect(asked).rejects.toThrow("cancelled");
    const other = ask(php);
    builds[0]?.finish();
    expect(await other).not.toBeNull();
    expect(builds).toHaveLength(1);
  });

  it("is none of what anybody names", async () => {
    const { ask } = host();
    expect(await ask({ kind: "php\nRUN id", image: php.image })).toBeNull();
    expect(await ask({ kind: "php", image: "other:1" })).toBeNull();
  });
});

describe("a Dockerfile of ours", () => {
  const none = { buildCommand: null, startCommand: null };
  const text = (files: Record<string, string>, packages: string[] = []) => {
    const variables = { plain: ["A"], secret: ["TOKEN"], cacheId: "site_x-packages" };
    return generateDockerfile(detect(sourcesOf(files), none), variables, undefined, [], packages);
  };
  const kinds = async (files: Record<string, string>, packages: string[] = []) => {
    const asked: string[] = [];
    const built = await withSharedBases(text(files, packages), ({ kind, image }) => {
      asked.push(`${kind} of ${image}`);
      return Promise.resolve(`shared:${kind}`);
    });
    return { asked, built };
  };
  const withPackage = '{"scripts":{"start":"node ."},"dependencies":{"a":"1"}}';
  const withBuild = '{"scripts":{"build":"vite build"},"devDependencies":{"vite":"7"}}';
  const ofPhp = '{"scripts":{"build":"php artisan icons && vite build"},"devDependencies":{"vite":"7"}}';
  const lockOf = (manager: string) => ({
    "package.json": withPackage,
    [manager === "pnpm" ? "pnpm-lock.yaml" : "bun.lock"]: "lockfileVersion: '9.0'\n",
  });

  it.each<[Record<string, string>, string, string?]>([
    [{ "index.php": "" }, "php of php:8-apache"],
    [{ "main.py": "" }, "python of python:3.13-slim-bookworm"],
    [{ "main.py": "", "uv.lock": "" }, "python-uv of python:3.13-slim-bookworm"],
    [{ "package.json": withPackage }, "node of node:24-bookworm-slim", "npm of node:24-bookworm-slim"],
    [lockOf("pnpm"), "node-pnpm-10 of node:24-bookworm-slim"],
    [lockOf("bun"), "node-bun of node:24-bookworm-slim"],
  ])(
    "begins with what sites share, whatever packages of Debian's it names: %o",
    async (files, expected, ...others) => {
      for (const packages of [[], ["ffmpeg"]]) {
        const { asked, built } = await kinds(files, packages);
        expect(asked).toEqual([expected, ...others]);
        expect(built).toContain(`FROM shared:${expected.split(" ")[0]} AS `);
        expect(built).not.toMatch(/RUN .*(?:libpq-dev|python3 -m venv|--prefix|corepack install)/);
        expect(built.includes("install --yes --no-install-recommends ffmpeg")).toBe(packages.length > 0);
      }
    },
  );

  const install =
    /^RUN --mount=type=bind,from=shared:npm,source=(\S+),target=\1 .*"export NODE_COMPILE_CACHE=\1; .*npm (?:ci|install)/gm;
  const locked = {
    "package.json": withPackage,
    "package-lock.json": '{"lockfileVersion":3,"packages":{"":{"dependencies":{"a":"1"}}}}',
  };

  it.each<[string, Record<string, string>]>([
    ["in a stage of its own", { "package.json": withPackage }],
    ["where the app runs", locked],
    ["for an app of another language", { "main.py": "", "package.json": withBuild }],
  ])("installs by npm %s with what sites share of npm", async (_, files) => {
    const { asked, built } = await kinds(files);
    expect(asked).toContain("npm of node:24-bookworm-slim");
    expect(built.match(install)).toHaveLength(1);
    expect(built.match(/NODE_COMPILE_CACHE/g)).toHaveLength(1);
  });

  it.each<[string, Record<string, string>]>([
    ["another package manager", lockOf("pnpm")],
    ["a Node that PHP's image was given", { "composer.json": "{}", "index.php": "", "package.json": ofPhp }],
  ])("installs by %s without it", async (_, files) => {
    const { asked, built } = await kinds(files);
    expect(asked.filter((one) => one.startsWith("npm "))).toEqual([]);
    expect(built).not.toContain("NODE_COMPILE_CACHE");
  });

  it.each([{ "index.php": "" }, locked])(
    "has all its steps where there is no such image: %o",
    async (files) => {
      expect(await withSharedBases(text(files), () => Promise.resolve(null))).toBe(text(files));
    },
  );
});
