import { execFile, execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  closeSync,
  ftruncateSync,
  linkSync,
  lutimesSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createStore } from "../../agent/databases/backups/store.ts";
import { createEngine } from "../../agent/docker/client.ts";
import { siteLabels, volumeName } from "../../agent/docker/specs.ts";
import { label } from "../../agent/docker/labels.ts";
import { handle } from "../../agent/handlers/index.ts";
import type { Host } from "../../agent/host.ts";
import { sweep } from "../../agent/startup/sweep.ts";
import { volumeFolder } from "../../agent/volumes/folder.ts";
import type { Job, JobKind, JobResult } from "../../protocol/agent/jobs.ts";
import { formatId, type IdKind } from "../../protocol/ids.ts";
import { emptyDisk } from "../support/empty-disk.ts";
import { jobRun } from "../support/job-run.ts";
import { PartServer } from "../support/part-server.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const newId = <K extends IdKind>(kind: K) => formatId(kind, Date.now(), randomBytes(10));
const engine = createEngine({
  socketPath: process.env["DOCKER_HOST"]?.replace("unix://", "") ?? "/var/run/docker.sock",
});
const docker = async (...args: string[]) => (await promisify(execFile)("docker", args)).stdout.trim();
const agentId = randomBytes(8).toString("hex");
const accountId = newId("account");
const siteId = newId("site");
const volume = "data";
const store = new PartServer();
const containers: string[] = [];
let host: Host;
const workDirectory = temporaryFolder();

beforeAll(async () => {
  host = {
    agentId,
    engine,
    backups: createStore({ url: await store.listen(), token: store.token }),
    workDirectory,
    buildRoom: emptyDisk(),
    ingress: { sites: () => [], current: () => null, lost: () => [] },
    retire: () => undefined,
  } as unknown as Host;
});
afterAll(async () => {
  store.close();
  for (const id of containers) await engine.removeContainer(id);
  for (const { name } of await engine.volumes(siteLabels(siteId))) await engine.removeVolume(name);
});

async function does<K extends JobKind>(kind: K, args: object, on = host): Promise<JobResult<K>> {
  const id = newId("job");
  return (await handle(on, { id, kind, args } as unknown as Job, jobRun({ jobId: id }))) as JobResult<K>;
}
async function backUp(of = volume) {
  const backupId = newId("backup");
  const { consistent } = await does("volume.backup", { siteId, volume: of, backupId, attempt: 1 });
  return { backupId, consistent };
}
function stored(backupId: string) {
  const { databaseName: _, ...backup } = store.stored(backupId, "unused");
  return backup;
}
const verify = async (backupId: string) => (await does("volume.verify", { backup: stored(backupId) })).damage;
const restore = async (backupId: string, into = volume, diskGb = 2) =>
  (await does("volume.restore", { siteId, accountId, volume: into, backup: stored(backupId), diskGb }))
    .damage;

/** Makes the volume, as a deployment does, empty. */
async function folderOf(name = volume): Promise<string> {
  await engine.ensureVolume(volumeName(siteId, name), {
    ...siteLabels(siteId),
    [label.agent]: agentId,
    [label.volume]: name,
  });
  const folder = await volumeFolder(engine, siteId, name);
  if (folder === null) throw new Error(`There is no volume ${name}`);
  empty(folder);
  return folder;
}

/** A running container of the site that mounts the volume. */
async function runs(...command: string[]): Promise<string> {
  const labels = { ...siteLabels(siteId), [label.agent]: agentId, [label.volumes]: volume };
  const id = await docker(
    "run",
    "-d",
    "--init",
    "--mount",
    `type=volume,source=${volumeName(siteId, volume)},target=/data`,
    ...Object.entries(labels).flatMap(([name, value]) => ["--label", `${name}=${value}`]),
    "node:24-bookworm-slim",
    ...command,
  );
  containers.push(id);
  return id;
}

/** Every entry with all that a restore has to bring back, and its content. */
function everything(folder: string): Record<string, string> {
  const list = execFileSync(
    "find",
    [
      ".",
      "-printf",
      "%y %m %U %G %n %T@ [%l] ",
      "(",
      "-type",
      "f",
      "-printf",
      "%s",
      "-o",
      "-true",
      ")",
      "-printf",
      " %p\\0",
    ],
    { cwd: folder, maxBuffer: 64 * 1024 * 1024 },
  );
  const found = list
    .toString("latin1")
    .split("\0")
    .filter(Boolean)
    .toSorted()
    .map((line) => [line, ""] as const);
  const sums = execFileSync("sh", ["-c", "find . -type f -print0 | sort -z | xargs -0r sha256sum -z"], {
    cwd: folder,
    maxBuffer: 64 * 1024 * 1024,
  });
  const sum = createHash("sha256").update(sums).digest("hex");
  return { ...Object.fromEntries(found), "content of all": sum };
}
const empty = (folder: string) => execFileSync("find", [".", "-mindepth", "1", "-delete"], { cwd: folder });
const diskBytes = (folder: string) =>
  Number(execFileSync("du", ["-s", "--block-size=1", folder]).toString().split("\t")[0]);

/** Files as hostile as a container's root can make them. */
function fill(folder: string): void {
  const at = (...names: string[]) => join(folder, ...names);
  writeFileSync(at("plain.txt"), "hello");
  writeFileSync(at("empty"), "");
  writeFileSync(at("large"), randomBytes(20 * 1024 * 1024 + 7));
  writeFileSync(at("secret"), "no one may read");
  chmodSync(at("secret"), 0o000);
  writeFileSync(at("program"), "#!/bin/sh\n");
  chownSync(at("program"), 1000, 2000);
  chmodSync(at("program"), 0o6755);
  mkdirSync(at("shared"));
  chmodSync(at("shared"), 0o1777);
  mkdirSync(at("empty folder"));
  chownSync(at("empty folder"), 65_534, 4_000_000);
  linkSync(at("plain.txt"), at("shared", "hard link"));
  symlinkSync("/etc/shadow", at("absolute"));
  symlinkSync("../../../../etc", at("upwards"));
  symlinkSync("nothing there", at("dangling"));
  symlinkSync(".", at("itself"));
  execFileSync("mkfifo", [at("pipe")]);
  for (const name of [
    "line\nbreak",
    "tab\tand space ",
    "--checkpoint-action=exec=sh",
    "-rf",
    "*",
    "ümläut 🚢",
    "\\n",
    "'\"",
  ])
    writeFileSync(at(name), name);
  execFileSync("sh", ["-c", "printf x > \"$(printf 'not\\377utf8')\""], { cwd: folder });
  const deep = Array.from({ length: 12 }, (_, level) => `${level}`.padEnd(100, "d"));
  mkdirSync(at(...deep), { recursive: true });
  writeFileSync(at(...deep, "n".repeat(255)), "deep");
  const sparse = openSync(at("sparse"), "w");
  writeSync(sparse, "begin", 0);
  writeSync(sparse, "end", 384 * 1024 ** 2);
  ftruncateSync(sparse, 512 * 1024 ** 2);
  closeSync(sparse);
  utimesSync(at("plain.txt"), 1, 86_400.25);
  lutimesSync(at("dangling"), 1, 1_000_000);
  chownSync(folder, 1000, 1000);
  chmodSync(folder, 0o750);
}

describe("a volume's backup", () => {
  it("brings back every file as it was: owners, modes, times, links, holes and any name", async () => {
    const folder = await folderOf();
    fill(folder);
    const before = everything(folder);
    const { backupId, consistent } = await backUp();
    expect(consistent).toBe(true);
    expect(await verify(backupId)).toBeNull();
    // Holes are not stored, and not filled.
    expect(stored(backupId).sizeBytes).toBeLessThan(30 * 1024 * 1024);

    empty(folder);
    writeFileSync(join(folder, "newer"), "not in the backup");
    expect(await restore(backupId)).toBeNull();
    expect(everything(folder)).toEqual(before);
    expect(diskBytes(folder)).toBeLessThan(40 * 1024 * 1024);
    expect(readdirSync(dirname(folder))).toEqual(["_data"]);
    expect(readdirSync(workDirectory)).toEqual([]);
  });

  it("is restored beside, into a volume that it creates", async () => {
    const folder = await folderOf();
    writeFileSync(join(folder, "one"), "1");
    const before = everything(folder);
    const { backupId } = await backUp();
    expect(await restore(backupId, "beside")).toBeNull();
    const beside = await volumeFolder(engine, siteId, "beside");
    expect(everything(beside ?? "")).toEqual(before);
  });

  it("of an empty volume is an empty volume", async () => {
    const folder = await folderOf();
    const { backupId } = await backUp();
    expect(await verify(backupId)).toBeNull();
    writeFileSync(join(folder, "later"), "");
    expect(await restore(backupId)).toBeNull();
    expect(readdirSync(folder)).toEqual([]);
  });

  it("holds one moment: a program that writes two files in turn is frozen while they are read", async () => {
    const folder = await folderOf();
    writeFileSync(join(folder, "between"), randomBytes(1024 * 1024));
    const script =
      "const fs=require('fs');for(let n=1;;n++){fs.writeFileSync('/data/a',String(n));fs.writeFileSync('/data/z',String(n))}";
    const id = await runs("node", "-e", script);
    await expect.poll(() => readdirSync(folder)).toEqual(expect.arrayContaining(["a", "z"]));
    const { backupId, consistent } = await backUp();
    expect(consistent).toBe(true);
    expect((await docker("inspect", "-f", "{{.State.Paused}}", id)).trim()).toBe("false");
    await engine.removeContainer(id);
    expect(await restore(backupId)).toBeNull();
    const [a, z] = ["a", "z"].map((name) => Number(readFileSync(join(folder, name), "utf8") || "NaN"));
    // A file may just be emptied; never is the later one newer.
    if (Number.isFinite(a) && Number.isFinite(z)) expect([0, 1]).toContain((a ?? 0) - (z ?? 0));
  });

  it("lets its site go on after five seconds, and says so", async () => {
    const folder = await folderOf();
    writeFileSync(join(folder, "large"), randomBytes(40 * 1024 * 1024));
    const id = await runs("sleep", "600");
    let resumedWhileSending = false;
    const isPaused = async () => (await docker("inspect", "-f", "{{.State.Paused}}", id)) === "true";
    store.disturb = (request, response) => {
      if (!request.url?.includes("/parts/1")) return false;
      // The store answers nothing until the site runs again.
      request.resume();
      void expect
        .poll(isPaused)
        .toBe(false)
        .then(() => {
          resumedWhileSending = true;
          store.disturb = () => false;
          response.writeHead(503).end();
        });
      return true;
    };
    const { consistent } = await backUp();
    expect([consistent, resumedWhileSending]).toEqual([false, true]);
    await engine.removeContainer(id);
  });

  it("does not leave a site frozen when the agent ends meanwhile: the next one wakes it", async () => {
    await folderOf();
    const id = await runs("sleep", "600");
    await engine.pauseContainer(id);
    await sweep({ ...host, ingress: { ...host.ingress, lost: () => [siteId] } }).catch(() => undefined);
    expect(await docker("inspect", "-f", "{{.State.Paused}}", id)).toBe("false");
    await engine.removeContainer(id);
  });

  it("is not restored under a running program, into too small a pack, or when it is damaged: nothing changes", async () => {
    const folder = await folderOf();
    writeFileSync(join(folder, "old"), randomBytes(9 * 1024 * 1024));
    const { backupId } = await backUp();
    writeFileSync(join(folder, "new"), "still here");
    const before = everything(folder);

    const id = await runs("sleep", "600");
    await expect(restore(backupId)).rejects.toThrow("uses the volume: stop the site");
    await engine.removeContainer(id);

    await expect(restore(backupId, volume, 0.001)).rejects.toThrow("choose a larger pack");

    const kept = store.found(backupId);
    const { data } = kept;
    kept.data = Buffer.concat([data.subarray(0, 5000), Buffer.from("damaged"), data.subarray(5007)]);
    expect(await verify(backupId)).toMatch(/unpacked|SHA-256|stored/);
    expect(await restore(backupId)).toMatch(/unpacked|SHA-256|stored/);
    kept.data = data.subarray(0, data.length - 100);
    expect(await restore(backupId)).toMatch(/bytes, but/);
    expect(everything(folder)).toEqual(before);
    expect(readdirSync(dirname(folder))).toEqual(["_data"]);
    expect(readdirSync(workDirectory)).toEqual([]);
  });

  it("that cannot be put in the place of what was there leaves that there", async () => {
    const folder = await folderOf();
    const { backupId } = await backUp();
    writeFileSync(join(folder, "newer"), "still here");
    const before = everything(folder);
    // The disk loses what was restored at the last moment.
    const losing: Host["engine"] = {
      ...engine,
      listContainers(labels) {
        rmSync(join(dirname(folder), "berth-restored"), { recursive: true, force: true });
        return engine.listContainers(labels);
      },
    };
    const args = { siteId, accountId, volume, backup: stored(backupId), diskGb: 2 };
    await expect(does("volume.restore", args, { ...host, engine: losing })).rejects.toThrow("ENOENT");
    expect(everything(folder)).toEqual(before);
    expect(readdirSync(dirname(folder))).toEqual(["_data"]);
  });

  it("is restored by the repeated job, wherever the first one ended", async () => {
    const folder = await folderOf();
    writeFileSync(join(folder, "kept"), "1");
    const { backupId } = await backUp();
    const wanted = everything(folder);
    const parent = dirname(folder);
    // Between the two renames, with the leftovers of the unpacking.
    writeFileSync(join(folder, "newer"), "2");
    execFileSync("mv", [folder, join(parent, "berth-replaced")]);
    mkdirSync(join(parent, "berth-restored", "half"), { recursive: true });
    expect(await restore(backupId)).toBeNull();
    expect(everything(folder)).toEqual(wanted);
    // After both.
    mkdirSync(join(parent, "berth-replaced", "old"), { recursive: true });
    expect(await restore(backupId)).toBeNull();
    expect(everything(folder)).toEqual(wanted);
    expect(readdirSync(parent)).toEqual(["_data"]);
    expect(statSync(folder).isDirectory()).toBe(true);
  });

  it("is restored also where what the volume held before cannot be removed, once and again", async () => {
    const folder = await folderOf();
    writeFileSync(join(folder, "kept"), "1");
    const { backupId } = await backUp();
    const wanted = everything(folder);
    const parent = dirname(folder);
    const attribute = (sign: "+i" | "-i", ...path: string[]) =>
      execFileSync("chattr", ["-R", sign, join(parent, ...path)]);
    attribute("+i", "_data", "kept");
    try {
      expect(await restore(backupId)).toBeNull();
      expect([everything(folder), readdirSync(parent).toSorted()]).toEqual([
        wanted,
        ["_data", "berth-replaced"],
      ]);
      expect(await restore(backupId)).toBeNull();
      expect(everything(folder)).toEqual(wanted);
    } finally {
      attribute("-i");
      for (const name of readdirSync(parent))
        if (name !== "_data") rmSync(join(parent, name), { recursive: true });
    }
  });

  it("of a volume that the host does not have is refused with what to do", async () => {
    await expect(backUp("never")).rejects.toThrow("deploy the site with it");
  });
});
