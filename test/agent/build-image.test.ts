import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Host } from "../../agent/host.ts";
import { buildKeyOf } from "../../agent/image-build/build-key.ts";
import { Readers } from "../../agent/image-build/readers.ts";
import { JobError } from "../../agent/job.ts";
import { buildImage } from "../../agent/sites/build-image.ts";
import { formatId } from "../../protocol/ids.ts";
import { startGitServer, type GitServer } from "../../scripts/lib/git-server.ts";
import { deployArgs } from "../support/deploy-args.ts";
import { git } from "../support/git.ts";
import { jobRun } from "../support/job-run.ts";
import { runSpec } from "../support/run-spec.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const repository = "berth-site/x";
const deploymentId = formatId("deployment", 1, new Uint8Array(10));
const root = temporaryFolder();
let workDirectory: string;
let server: GitServer;
beforeAll(async () => {
  workDirectory = join(root, "work");
  mkdirSync(workDirectory);
  server = await startGitServer(root);
});
afterAll(() => server.close());

const repositoryFolder = () => join(root, "app.git");

it("the newest commit is built, unless its image is kept: then what was fetched meanwhile is gone", async () => {
  mkdirSync(repositoryFolder());
  git(repositoryFolder(), "init", "--quiet", "--initial-branch=main");
  const commit = () => {
    git(repositoryFolder(), "commit", "--quiet", "--allow-empty", "--message", "One more");
    return git(repositoryFolder(), "rev-parse", "HEAD");
  };
  const address = `127.0.0.1:${server.port}/app.git`;
  const source = { type: "git", address, branch: null, token: null } as const;
  const full = new JobError("The host is short of disk.");
  const host = {
    workDirectory,
    readers: new Readers(join(root, "readers")),
    imageRepository: () => repository,
    engine: { imageId: () => Promise.resolve("i") },
    settings: { insecureGitHosts: [`127.0.0.1:${server.port}`], buildCaFile: null },
    buildRoom: { demandDisk: () => Promise.reject(full) },
  } as unknown as Host;
  const first = commit();
  const kept = [
    {
      deploymentId,
      number: 1,
      commit: first,
      commitMessage: "One more",
      imageDigest: "i",
      imageId: "i",
      buildKey: buildKeyOf(deployArgs({ source }), first, repository),
    },
  ];
  const lines: string[] = [];
  const afterwards: (() => Promise<void>)[] = [];
  const job = jobRun({
    log: (line) => void lines.push(line),
    afterwards: (work) => void afterwards.push(work),
  });
  const build = () => buildImage(host, deployArgs({ source, kept }), `${repository}:2`, job);
  const left = async () => {
    for (const work of afterwards.splice(0)) await work();
    return readdirSync(workDirectory);
  };

  await expect(build()).resolves.toMatchObject({ imageId: "i", commit: first, buildMs: null });
  expect(lines.at(-1)).toBe("Nothing to build has changed: using the image of deployment 1.");
  expect(await left()).toEqual([]);

  commit();
  await expect(build()).rejects.toBe(full);
  expect(await left()).toEqual([]);
});

it("what a repository or an attempt before wrote is gone at the end, however long its paths are", async () => {
  const job = jobRun({ afterwards: (work) => void later.push(work) });
  const later: (() => Promise<void>)[] = [];
  const long = Array.from({ length: 25 }, () => "d".repeat(200)).join("/");
  const write = (name: string) =>
    execFileSync("mkdir", ["-p", join(workDirectory, `${job.jobId}-${job.attempt}`, name, long)]);
  const full = new JobError("The host is short of disk.");
  const demandDisk = () => {
    write("source");
    return Promise.reject(full);
  };
  const host = {
    workDirectory,
    readers: new Readers(join(root, "readers")),
    imageRepository: () => repository,
    settings: { insecureGitHosts: [], buildCaFile: null },
    buildRoom: { demandDisk },
  } as unknown as Host;
  write("before");
  const source = { type: "dockerfile", text: "FROM scratch" } as const;
  await expect(buildImage(host, deployArgs({ source }), `${repository}:2`, job)).rejects.toBe(full);
  for (const work of later) await work();
  expect(readdirSync(workDirectory)).toEqual([]);
});

it("a volume on the folder that Berth puts the app into is refused, since it would hide every later version", async () => {
  mkdirSync(join(root, "site.git"));
  git(join(root, "site.git"), "init", "--quiet", "--initial-branch=main");
  writeFileSync(join(root, "site.git", "package.json"), JSON.stringify({ scripts: { start: "node ." } }));
  git(join(root, "site.git"), "add", ".");
  git(join(root, "site.git"), "commit", "--quiet", "--message", "One");
  const host = {
    workDirectory,
    readers: new Readers(join(root, "readers")),
    imageRepository: () => repository,
    engine: { imageId: () => Promise.resolve(null) },
    settings: { insecureGitHosts: [`127.0.0.1:${server.port}`], buildCaFile: null },
    buildRoom: { demandDisk: () => Promise.resolve() },
    isolation: { demand: () => Promise.reject(new JobError("It is built.")) },
  } as unknown as Host;
  const address = `127.0.0.1:${server.port}/site.git`;
  const source = { type: "git", address, branch: null, token: null } as const;
  const build = (mountPath: string, attempt: number) => {
    const run = runSpec({ volumes: [{ name: "data", mountPath }] });
    return buildImage(host, deployArgs({ run, source }), `${repository}:2`, jobRun({ attempt }));
  };
  await expect(build("/app", 1)).rejects.toThrow("The volume data is mounted at /app");
  await expect(build("/app/data", 2)).rejects.toThrow("It is built.");
});
