import type { ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { readConfig } from "../../agent/config.ts";
import { basesOf, openImageProvider, type ImageProvider } from "../../agent/image-build/image-provider.ts";
import { Readers } from "../../agent/image-build/readers.ts";
import { baseImages } from "../../agent/image-build/dockerfile/instructions.ts";
import type { Engine } from "../../agent/docker/engine.ts";
import { buildImage } from "../../agent/sites/build-image.ts";
import type { Host } from "../../agent/host.ts";
import { startGitServer, type GitServer } from "../../scripts/lib/git-server.ts";
import { deployArgs } from "../support/deploy-args.ts";
import { git } from "../support/git.ts";
import { jobRun } from "../support/job-run.ts";
import { received } from "../support/received.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

// Programs run, on machines that do other things as well.
vi.setConfig({ testTimeout: 30_000 });

let folder: string;
beforeEach(() => void (folder = temporaryFolder()));
const file = (name: string) => join(folder, name);

/** A program of a shell's few lines; `$1` is the folder, `$2` the image. */
function provider(lines: string, timeoutMs?: number) {
  const program = file("provider");
  writeFileSync(program, `#!/bin/sh\n${lines}\n`, { mode: 0o755 });
  return openImageProvider([program, folder], timeoutMs);
}
const { python, ruby } = baseImages;
const never = new AbortController().signal;

describe("the program that makes base images", () => {
  it("is run with the image as one argument, without the agent's own settings; what it prints is in the log", async () => {
    process.env["BERTH_HOST_TOKEN_TEST"] = "secret";
    const provide = provider('echo "Making $2, $# arguments"; echo "and more" >&2; env > "$1/env"');
    const lines: string[] = [];
    await provide(python, { signal: never, log: (text) => lines.push(text) });
    delete process.env["BERTH_HOST_TOKEN_TEST"];
    expect(lines.toSorted()).toEqual([`Making ${python}, 2 arguments`, "and more"]);
    expect(readFileSync(file("env"), "utf8")).not.toContain("BERTH_");
  });

  it("runs once for all deployments that need the image at a time, and each sees what it prints", async () => {
    const provide = provider('echo run >> "$1/runs"; while [ ! -e "$1/go" ]; do sleep 0.05; done; echo Made');
    const logs: string[][] = [[], [], []];
    const all = logs.map((lines) => provide(python, { signal: never, log: (text) => lines.push(text) }));
    writeFileSync(file("go"), "");
    await Promise.all(all);
    expect(readFileSync(file("runs"), "utf8")).toBe("run\n");
    for (const lines of logs) expect(lines.at(-1)).toBe("Made");
    expect(logs[1]?.[0]).toMatch(/being made on this host already/);
    await provide(python, { signal: never, log: () => undefined });
    expect(readFileSync(file("runs"), "utf8")).toBe("run\nrun\n");
  });

  it("goes on for those who still wait, and ends when the last one was cancelled", async () => {
    const provide = provider(
      'trap "touch $1/ended; exit 1" TERM; touch "$1/begun"; while :; do sleep 0.05; done',
    );
    const [first, second] = [new AbortController(), new AbortController()];
    const waits = [first, second].map(({ signal }) => provide(ruby, { signal, log: () => undefined }));
    await vi.waitUntil(() => existsSync(file("begun")), 10_000);
    first.abort(new Error("cancelled"));
    await expect(waits[0]).rejects.toThrow("cancelled");
    expect(existsSync(file("ended"))).toBe(false);
    second.abort(new Error("cancelled"));
    await expect(waits[1]).rejects.toThrow("cancelled");
    await vi.waitUntil(() => existsSync(file("ended")), 10_000);
  });

  it("that fails, is missing or takes too long fails the deployment with a sentence, and may be tried again", async () => {
    const run = { signal: never, log: () => undefined };
    const failing = provider('[ -e "$1/mended" ]');
    await expect(failing(python, run)).rejects.toThrow(/cannot be pulled, and making it on this host failed/);
    writeFileSync(file("mended"), "");
    await failing(python, run);
    await expect(openImageProvider([file("missing")])(python, run)).rejects.toThrow(/did not begin/);
    await expect(provider("sleep 30", 50)(python, run)).rejects.toThrow(/took more than/);
  });

  it("never sees an image that is not of our own list", async () => {
    const provide = provider('touch "$1/ran"');
    for (const image of ["python:3.12-slim-bookworm", "evil", "--help", `${python} `])
      await expect(provide(image, { signal: never, log: () => undefined })).rejects.toThrow(/not one of our/);
    expect(existsSync(file("ran"))).toBe(false);
  });
});

describe("a deployment", () => {
  const here = new Set<string>();
  const pulled: string[] = [];
  const made: string[] = [];
  const built: string[] = [];

  /** A host with these images, out of reach of any registry. */
  function hostWith(images: string[], provideImage?: ImageProvider): Host {
    for (const list of [pulled, made, built]) list.length = 0;
    here.clear();
    for (const image of images) here.add(image);
    const engine: Partial<Engine> = {
      imageId: (name) => Promise.resolve(here.has(name) ? `sha256:${"a".repeat(64)}` : null),
      removeImage: () => Promise.resolve(),
      pullImage: (name) => (pulled.push(name), Promise.reject(new Error("no registry"))),
      build: async ({ tag, context }) => {
        if (context !== null) await received(context());
        built.push(tag);
        here.add(tag);
      },
    };
    const host: Partial<Host> = {
      engine: engine as Engine,
      isolation: { demand: () => Promise.resolve() } as Host["isolation"],
      buildRoom: {
        memoryMb: 1,
        disk: () => Promise.resolve(null),
        makeRoom: () => Promise.resolve(),
        demandDisk: () => Promise.resolve(),
        enter: () => Promise.resolve({ signal: never, end: () => undefined }),
        receive: () => Promise.resolve({ signal: never, end: () => undefined }),
      },
      workDirectory: folder,
      readers: new Readers(file("readers")),
      imageRepository: () => "berth-site/x",
      settings: {
        insecureGitHosts: [address.split("/")[0] ?? ""],
        buildCaFile: null,
        drainSeconds: 1,
        drainMaxSeconds: 1,
        probationSeconds: 0,
      },
      provideImage,
    };
    return host as Host;
  }
  const makes: ImageProvider = (image) => (made.push(image), here.add(image), Promise.resolve());

  let server: GitServer;
  let address: string;
  const repository = () => file("git/owner/app.git");
  beforeEach(async () => {
    mkdirSync(file("git/owner/app.git"), { recursive: true });
    git(repository(), "init", "--initial-branch=main");
    server = await startGitServer(file("git"));
    address = `127.0.0.1:${server.port}/owner/app.git`;
  });
  afterEach(() => server.close());

  const deploy = (host: Host, files: Record<string, string>, signal = never) => {
    for (const [name, text] of Object.entries(files)) writeFileSync(file(`git/owner/app.git/${name}`), text);
    git(repository(), "add", "--all");
    git(repository(), "commit", "-m", "x");
    const args = deployArgs({ source: { type: "git", address, branch: null, token: null } });
    return buildImage(host, args, "berth-site/x:1", jobRun({ signal }));
  };

  it("reads a repository in a process of its own, until it is cancelled", async () => {
    const { user: ownBefore } = process.cpuUsage();
    const ownMs = () => (process.cpuUsage().user - ownBefore) / 1000;
    const take = vi.spyOn(Readers.prototype, "take");
    const reader = () => take.mock.results[0]?.value as ChildProcess | undefined;
    // Ticks of 10 ms (proc_pid_stat(5)).
    const apartMs = () =>
      Number((reader() && readFileSync(`/proc/${reader()?.pid}/stat`, "utf8").split(" ")[13]) ?? 0) * 10;
    // Each of its many rules is compared to the end of each long name.
    const files = Array.from({ length: 200 }, (_, number) => [`${"a".repeat(240)}${number}`, ""]);
    const slow = { Dockerfile: "FROM scratch\n", ".dockerignore": "*?b\n".repeat(8000) };
    const cancel = new AbortController();
    onTestFinished(() => cancel.abort());
    const deployed = deploy(hostWith([]), { ...slow, ...Object.fromEntries(files) }, cancel.signal);
    const error = deployed.catch((reason: unknown) => reason);
    await expect.poll(apartMs).toBeGreaterThan(2000);
    expect(ownMs()).toBeLessThan(1000);
    cancel.abort(new Error("cancelled"));
    expect(await error).toEqual(new Error("cancelled"));
    await expect.poll(() => reader()?.signalCode).toBe("SIGKILL");
    expect(built).toEqual([]);
  });

  it("has the base images made that are missing and cannot be pulled, then builds", async () => {
    await deploy(hostWith([], makes), { "main.py": "", "requirements.txt": "" });
    expect([pulled, made, built]).toEqual([[python], [python], ["berth-site/x:1"]]);
    await deploy(hostWith([python], makes), { "other.txt": "" });
    expect([pulled, made, built]).toEqual([[], [], ["berth-site/x:1"]]);
  });

  it("without such a program leaves base images to the build", async () => {
    await deploy(hostWith([]), { "main.py": "", "requirements.txt": "" });
    expect([pulled, made, built]).toEqual([[], [], ["berth-site/x:1"]]);
  });

  it("with a Dockerfile of its own has nothing made, whatever it names", async () => {
    await deploy(hostWith([], makes), { Dockerfile: `FROM ${python}\nFROM evil\n` });
    expect([pulled, made, built]).toEqual([[], [], ["berth-site/x:1"]]);
  });

  it("fails with a sentence where the program can make none, as of .NET's", async () => {
    const refuses = provider('echo "there is no stand-in for $2" >&2; exit 1');
    await expect(deploy(hostWith([], refuses), { "Web.csproj": "" })).rejects.toThrow(
      "The base image mcr.microsoft.com/dotnet/sdk:10.0 cannot be pulled, and making it on this host failed (see the deployment's log)",
    );
  });

  it("fails with a sentence where the program makes nothing", async () => {
    await expect(
      deploy(
        hostWith([], () => Promise.resolve()),
        { "main.py": "", "requirements.txt": "" },
      ),
    ).rejects.toThrow(/base image .* is missing on this host/);
  });
});

it("the base images of a Dockerfile are those of our own list, each once", () => {
  const dockerfile = `FROM ${python} AS build\nRUN ["sh","-c","FROM evil"]\nFROM evil\nFROM ${python}\nFROM ${ruby} AS x\nFROM build\n`;
  expect(basesOf(dockerfile)).toEqual([python, ruby]);
});

it("BERTH_IMAGE_PROVIDER is a path, or a JSON array of a program and its arguments", () => {
  const config = (value?: string) =>
    readConfig({
      BERTH_URL: "http://127.0.0.1:8787",
      BERTH_HOST_TOKEN: `hst_0${"A".repeat(43)}`,
      BERTH_STATE_DIR: folder,
      ...(value !== undefined && { BERTH_IMAGE_PROVIDER: value }),
    }).imageProvider;
  expect(config()).toBe(null);
  expect(config("/opt/make image")).toEqual(["/opt/make image"]);
  expect(config('["/opt/make","--quiet"]')).toEqual(["/opt/make", "--quiet"]);
  for (const wrong of ["[", "[]", "[1]", '[""]']) expect(() => config(wrong)).toThrow(/BERTH_IMAGE_PROVIDER/);
});
