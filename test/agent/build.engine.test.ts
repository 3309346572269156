import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { sendingStream } from "../../agent/docker/send-files.ts";
import { prepareBuild } from "../../agent/image-build/prepare.ts";
import type { EnvEntry } from "../../protocol/agent/jobs.ts";
import { engine } from "../support/engine.ts";
import { exactValues } from "../support/exact-values.ts";

const folders: string[] = [];
const tags: string[] = [];
afterAll(async () => {
  for (const folder of folders) rmSync(folder, { recursive: true });
  for (const tag of tags) await engine.removeImage(tag);
});

function repository(files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), "berth-engine-"));
  folders.push(folder);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

async function build(
  folder: string,
  env: EnvEntry[],
  signal = new AbortController().signal,
  onLine: (text: string) => void = () => undefined,
  isFresh = false,
  dockerfilePath: string | null = null,
  cacheNamespace = "test",
) {
  const input = {
    siteId: "site_test",
    rootDir: null,
    dockerfilePath,
    buildCommand: null,
    startCommand: null,
    env,
  };
  const prepared = await prepareBuild(folder, input, null);
  const tag = `berth-test/build:${tags.length}`;
  tags.push(tag);
  const lines: string[] = [];
  await engine.build({
    ...prepared,
    context: () => sendingStream(prepared.context()),
    tag,
    labels: { "berth.test": "true" },
    cacheNamespace,
    isFresh,
    signal,
    onLine: (text) => {
      lines.push(text);
      onLine(text);
    },
  });
  return { tag, lines };
}

const entry = (key: string, value: string, secret: boolean): EnvEntry => ({
  key,
  value,
  scope: "build",
  secret,
});
const docker = (...args: string[]) => execFileSync("docker", args, { encoding: "utf8" });

it("a secret build variable reaches the build step, and neither the image nor its history", async () => {
  const folder = repository({
    "package.json": JSON.stringify({ scripts: { start: "node server.js", build: "node build.js" } }),
    "build.js":
      'require("fs").writeFileSync("built.txt", process.env.TOKEN.length + " " + process.env.PLAIN);',
    "server.js": "",
  });
  const { tag } = await build(folder, [
    entry("TOKEN", "s3cret-build-value", true),
    entry("PLAIN", "plain-value", false),
  ]);
  expect(docker("run", "--rm", tag, "cat", "built.txt")).toBe("18 plain-value");
  expect(docker("run", "--rm", tag, "env")).not.toContain("TOKEN");
  expect(docker("history", "--no-trunc", tag)).not.toContain("s3cret-build-value");
});

it("variables of a build have the very bytes that they have at run time, secret or not", async () => {
  const values = exactValues;
  const folder = repository({
    "package.json": JSON.stringify({ scripts: { start: "node server.js", build: "node build.js" } }),
    "build.js": `require("fs").writeFileSync("built.json", JSON.stringify(process.env));`,
    "server.js": "",
  });
  const { tag } = await build(
    folder,
    Object.entries(values).flatMap(([key, value]) => [
      entry(`S_${key}`, value, true),
      entry(`P_${key}`, value, false),
    ]),
  );
  const built = JSON.parse(docker("run", "--rm", tag, "cat", "built.json")) as Record<string, string>;
  const named = (prefix: string) =>
    Object.fromEntries(Object.keys(values).map((key) => [key, built[prefix + key]]));
  expect(named("S_")).toEqual(values);
  expect(named("P_")).toEqual(values);
});

it("a secret that has changed is built with, though nothing else has; one that has not is not", async () => {
  const folder = repository({
    "package.json": JSON.stringify({ scripts: { start: "node server.js", build: "node build.js" } }),
    "build.js": 'require("fs").writeFileSync("built.txt", process.env.TOKEN + " " + Date.now());',
  });
  const built = async (token: string) => {
    const { tag } = await build(folder, [entry("TOKEN", token, true)]);
    return docker("run", "--rm", tag, "cat", "built.txt");
  };
  const first = await built(`one-${Date.now()}`);
  const token = first.split(" ")[0] ?? "";
  expect(await built(token)).toBe(first);
  expect(await built("another-value")).toContain("another-value ");
});

it("what a build fetches is fetched anew where a build is asked for though nothing has changed", async () => {
  const folder = repository({
    "package.json": JSON.stringify({ scripts: { start: "node server.js", build: "date +%s%N > built.txt" } }),
  });
  const built = async (isFresh: boolean) => {
    const { tag } = await build(folder, [], undefined, undefined, isFresh);
    return docker("run", "--rm", tag, "cat", "built.txt");
  };
  const first = await built(true);
  expect(await built(false)).toBe(first);
  expect(await built(true)).not.toBe(first);
});

it("each build has what its repository holds then: links, programs, names of all kinds, and nothing that is gone", async () => {
  const folder = repository({
    "docker/App.Dockerfile": "FROM node:24-bookworm-slim\nCOPY . /site\n",
    "run.sh": "#!/bin/sh\ncat *.txt\n",
    "größe.txt": "a",
    "deep/er/b": "b",
  });
  chmodSync(join(folder, "run.sh"), 0o755);
  symlinkSync("deep/er", join(folder, "link"));
  const list = async () => {
    const { tag } = await build(folder, [], undefined, undefined, false, "docker/App.Dockerfile");
    const command = "cd /site && find . -mindepth 1 -printf '%p %y %m %u %l\\n' | sort && ./run.sh";
    return docker("run", "--rm", "--env", "LC_ALL=C.UTF-8", tag, "sh", "-c", command).trim().split("\n");
  };
  expect(await list()).toEqual([
    "./deep d 755 root ",
    "./deep/er d 755 root ",
    "./deep/er/b f 644 root ",
    "./docker d 755 root ",
    "./docker/App.Dockerfile f 644 root ",
    "./größe.txt f 644 root ",
    "./link l 777 root deep/er",
    "./run.sh f 755 root ",
    "a",
  ]);
  // A folder becomes a file, a file a link, and one of the same size is another.
  for (const name of ["deep", "link"]) rmSync(join(folder, name), { recursive: true });
  writeFileSync(join(folder, "deep"), "");
  writeFileSync(join(folder, "größe.txt"), "c");
  symlinkSync("run.sh", join(folder, "link"));
  expect(await list()).toEqual([
    "./deep f 644 root ",
    "./docker d 755 root ",
    "./docker/App.Dockerfile f 644 root ",
    "./größe.txt f 644 root ",
    "./link l 777 root run.sh",
    "./run.sh f 755 root ",
    "c",
  ]);
});

it("a file that has the name, size and time of another tenant's is not taken for it", async () => {
  const built = async (tenant: string, text: string) => {
    const folder = repository({ Dockerfile: "FROM node:24-bookworm-slim\nCOPY file /\n", file: text });
    utimesSync(join(folder, "file"), 1_700_000_000, 1_700_000_000);
    const { tag } = await build(folder, [], undefined, undefined, false, null, tenant);
    return docker("run", "--rm", tag, "cat", "/file");
  };
  expect(await built("one", "mine")).toBe("mine");
  expect(await built("two", "ours")).toBe("ours");
});

it("a build goes on past the engine's health check of the session", async () => {
  // Never cached: what is cached asks for no secret.
  const folder = repository({
    Dockerfile: `FROM node:24-bookworm-slim\nRUN echo ${Date.now()} && sleep 8\nRUN --mount=type=secret,id=env_TOKEN cat /run/secrets/env_TOKEN | wc -c\n`,
  });
  const { lines } = await build(folder, [entry("TOKEN", "s3cret", true)]);
  expect(lines).toContain("6");
});

it("aborting ends the build in the engine", async () => {
  const folder = repository({ Dockerfile: "FROM node:24-bookworm-slim\nRUN echo begun && sleep 4321\n" });
  const abort = new AbortController();
  const running = () => execFileSync("ps", ["-eo", "args"], { encoding: "utf8" }).includes("sleep 4321\n");
  const built = build(
    folder,
    [],
    abort.signal,
    (text) => text === "begun" && abort.abort(new Error("enough")),
  );
  await expect(built).rejects.toThrow();
  for (const end = Date.now() + 10_000; running() && Date.now() < end;)
    await new Promise((resume) => setTimeout(resume, 100));
  expect(running()).toBe(false);
});

it("a link that leads out of the repository is not followed", async () => {
  const folder = repository({ "index.html": "x" });
  mkdirSync(join(folder, "app"));
  symlinkSync("/etc", join(folder, "app", "etc"));
  const input = {
    siteId: "site_test",
    rootDir: "app/etc",
    dockerfilePath: null,
    buildCommand: null,
    startCommand: null,
    env: [],
  };
  await expect(prepareBuild(folder, input, null)).rejects.toThrow("does not exist in the repository");
  symlinkSync("/etc/passwd", join(folder, "Dockerfile"));
  await expect(prepareBuild(folder, { ...input, rootDir: null }, null)).rejects.toThrow(
    "does not exist in the repository",
  );
});

describe.each<[string, Record<string, string>]>([
  ["plain files", {}],
  [
    "files that a build makes",
    { "package.json": JSON.stringify({ scripts: { build: "mkdir dist && cp -R site/. dist" } }) },
  ],
])("a site of %s", (_, sources) => {
  const below = Object.keys(sources).length > 0 ? "site/" : "";
  it("has no dot files in its image and answers them with 404, but what is well known", async () => {
    const pages = {
      "index.html": "home",
      "about.html": "about",
      ".env": "SECRET=1",
      ".git-credentials": "https://user:secret@git.example",
      "sub/.htpasswd": "user:secret",
      ".hidden/page.html": "hidden",
      ".well-known/security.txt": "Contact",
      ".well-known/.env": "SECRET=2",
    };
    const { tag } = await build(
      repository({
        ...sources,
        ...Object.fromEntries(Object.entries(pages).map(([name, text]) => [below + name, text])),
      }),
      [],
    );
    expect(docker("run", "--rm", tag, "find", "/srv", "-name", ".*").trim()).toBe("/srv/.well-known");
    const id = docker("run", "--detach", tag).trim();
    try {
      // What a site's own Dockerfile or a volume puts there is not served either.
      docker(
        "exec",
        "--user",
        "0",
        id,
        "sh",
        "-c",
        "echo SECRET=3 > /srv/.env; mkdir /srv/.well-known/.git; echo 4 > /srv/.well-known/.git/config",
      );
      const address = docker("inspect", "--format", "{{.NetworkSettings.IPAddress}}", id).trim();
      const get = (path: string) =>
        fetch(`http://${address}:3000${path}`).then(async (answer) => [answer.status, await answer.text()]);
      await expect.poll(() => get("/").catch(() => null)).toEqual([200, "home"]);
      expect(await get("/about")).toEqual([200, "about"]);
      expect(await get("/.well-known/security.txt")).toEqual([200, "Contact"]);
      for (const path of [
        "/.env",
        "/%2eenv",
        "//.env",
        "/sub/../.env",
        "/.git-credentials",
        "/sub/.htpasswd",
        "/.hidden/page",
        "/.well-known/.env",
        "/.well-known/.git/config",
        "/.well-known/../.env",
        "/.well-known/%2e%2e/.env",
      ])
        expect([path, ...(await get(path))]).toEqual([path, 404, ""]);
    } finally {
      docker("rm", "--force", id);
    }
  });
});
