import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { diskUsed } from "../../agent/docker/disk-used.ts";
import type { Engine } from "../../agent/docker/engine.ts";
import { ownerOf } from "../../agent/docker/image-user.ts";
import { deploySite } from "../../agent/handlers/deploy-site.ts";
import type { Host } from "../../agent/host.ts";
import type { Ingress } from "../../agent/ingress/ingress.ts";
import { DiskUse, nearPack } from "../../agent/running/disk-use.ts";
import { openRecords, type Records } from "../../agent/running/records.ts";
import { formatId } from "../../protocol/ids.ts";
import type { JobArgs } from "../../protocol/agent/jobs.ts";
import { deployArgs } from "../support/deploy-args.ts";
import { jobRun } from "../support/job-run.ts";
import { runSpec } from "../support/run-spec.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let folder: string;
let records: Records;

beforeEach(() => {
  folder = temporaryFolder();
  records = openRecords(join(folder, "running.db"));
});
afterEach(() => {
  records.close();
});

function write(name: string, megabytes: number): string {
  const path = join(folder, name);
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, "file"), Buffer.alloc(megabytes * 1024 * 1024, 1));
  return path;
}

/** A site whose container wrote 2 MB, beside its volumes. */
function siteWith(
  volumes: Record<string, string>,
  changes: {
    diskGb?: number;
    own?: string | null;
    mounted?: string;
    ownVolumes?: string[];
    ownFiles?: string[];
  } = {},
) {
  const { diskGb = 0, own = write("own", 2), mounted, ownVolumes = [], ownFiles = [] } = changes;
  let walks = 0;
  const engine = {
    volumes: () => {
      walks++;
      const all = Object.entries(volumes);
      return Promise.resolve(
        all.map(([name, path]) => ({ name, labels: { "berth.volume": name }, folder: path })),
      );
    },
    inspectContainer: () =>
      Promise.resolve({
        ownFolder: own,
        pid: 0,
        ownVolumes,
        ownFiles,
        labels: { "berth.disk": String(diskGb) },
      }),
  } as unknown as Engine;
  const ingress = {
    current: () => [{ containerId: "c", address: "10.0.0.2", port: 1 }],
  } as unknown as Ingress;
  return {
    use: new DiskUse({
      engine,
      ingress,
      records,
      databases: () => Promise.resolve(new Map()),
      ...(mounted !== undefined && { ownFolder: () => Promise.resolve(mounted) }),
    }),
    walks: () => walks,
  };
}

describe("what a site holds on disk", () => {
  it("is counted in files where those run short, however small they are", async () => {
    const files = join(folder, "files");
    mkdirSync(files);
    for (let file = 0; file < 99; file++) writeFileSync(join(files, String(file)), "");
    const megabyte = 1024 * 1024;
    const { use } = siteWith({ data: files });
    // With both folders, and the one file that the container wrote.
    const [holding] = await use.holdings("s", ["c"], [], { bytesPerFile: megabyte });
    expect(holding).toMatchObject({ heldMb: 102, isOfFiles: true });
    // However fast this machine counts.
    writeFileSync(join(folder, "nice"), "#!/bin/sh\nexec sleep 60\n", { mode: 0o755 });
    vi.stubEnv("PATH", `${folder}:${process.env["PATH"]}`);
    expect(await diskUsed([files], { limitMs: 1 })).toBeNull();
    vi.unstubAllEnvs();
  });

  it("is what its containers wrote and its volumes hold", async () => {
    const { use } = siteWith({ data: write("data", 3), more: write("more", 1) });
    expect(use.totalMb("s")).toBeNull();
    expect(await use.of("s", 0)).toEqual({
      volumes: [
        { name: "data", sizeMb: expect.closeTo(3, 0) },
        { name: "more", sizeMb: expect.closeTo(1, 0) },
      ],
      writtenMb: expect.closeTo(2, 0),
      totalMb: expect.closeTo(6, 0),
    });
    expect(use.totalMb("s")).toBeCloseTo(6, 0);
  });

  it("counts volumes without a name, which an image may ask for", async () => {
    const { use } = siteWith({}, { ownVolumes: [write("nameless", 3)] });
    expect((await use.of("s", 0)).totalMb).toBeCloseTo(5, 0);
  });

  it("counts the engine's own files, such as /etc/hosts, which root in a container may fill", async () => {
    const ownFiles = [join(write("engine", 3), "file"), join(folder, "gone")];
    const { use } = siteWith({}, { ownFiles });
    expect((await use.of("s", 0)).totalMb).toBeCloseTo(5, 0);
  });

  it("is known where only the container's own mounts say where it writes", async () => {
    const { use } = siteWith({ data: write("data", 1) }, { own: null, mounted: write("snapshot", 2) });
    expect((await use.of("s", 0)).totalMb).toBeCloseTo(3, 0);
  });

  it("is not known where the engine's driver has no folder of the container's, or the files are not here", async () => {
    expect((await siteWith({}, { own: null }).use.of("s", 0)).totalMb).toBeNull();
    expect(await siteWith({ data: join(folder, "nowhere") }).use.of("s", 0)).toEqual({
      volumes: [{ name: "data", sizeMb: null }],
      writtenMb: expect.closeTo(2, 0),
      totalMb: null,
    });
  });

  it("is walked once for all who ask at the same time, and not again while the figure is young", async () => {
    const { use, walks } = siteWith({ data: write("data", 1) });
    await Promise.all([use.of("s", 1000), use.of("s", 1000), use.soon("s", 1000, 5000)]);
    await use.of("s", 60_000);
    expect(walks()).toBe(1);
    await use.of("s", -1);
    expect(walks()).toBe(2);
  });

  it("is as last known for whoever does not wait", async () => {
    const { use } = siteWith({ data: write("data", 1) });
    expect(await use.soon("s", -1, 0)).toBeNull();
    await use.of("s", 60_000);
    expect(await use.soon("s", -1, 0)).toMatchObject({ volumes: [{ name: "data" }] });
  });

  it("is said to be too much once, until it was less", async () => {
    const path = write("data", 1);
    const { use } = siteWith({ data: path }, { diskGb: 0.0005, own: write("own", 0) });
    const kinds = () => records.events("s").map(({ kind, detail }) => `${kind} ${detail.slice(0, 27)}`);
    await use.of("s", -1);
    await use.of("s", -1);
    expect(kinds()).toEqual(["disk_full The site is over its disk: "]);
    rmSync(join(path, "file"));
    await use.of("s", -1);
    write("data", 1);
    await use.of("s", -1);
    expect(kinds()).toHaveLength(2);
  });

  it("is of a database what the volume it runs on holds, and it is told when that is more than its pack has", async () => {
    const databaseId = formatId("database", 1, new Uint8Array(10));
    const labels = { "berth.volume": "now", "berth.disk": "0.0015" };
    const folders = { now: write("now", 1), "of a restore": write("restore", 5) };
    const engine = {
      volumes: () =>
        Promise.resolve(Object.entries(folders).map(([name, path]) => ({ name, labels: {}, folder: path }))),
      inspectContainer: () => Promise.resolve({ labels }),
    } as unknown as Engine;
    const ingress = { current: () => null } as unknown as Ingress;
    const use = new DiskUse({ engine, ingress, records, databases: () => Promise.resolve(new Map()) });
    expect(use.databases()).toEqual([]);
    await use.of(databaseId, -1);
    expect(use.databases()).toEqual([{ databaseId, usedMb: expect.closeTo(1, 0) }]);
    expect(records.events(databaseId)).toEqual([]);
    write("now", 3);
    await use.of(databaseId, -1);
    await use.of(databaseId, -1);
    expect(use.databases()).toEqual([{ databaseId, usedMb: expect.closeTo(3, 0) }]);
    expect(records.events(databaseId)).toMatchObject([
      { kind: "disk_full", detail: expect.stringMatching(/^The database holds .* larger pack, or delete/) },
    ]);
  });

  it("is what lies there, not where its links lead", async () => {
    const path = write("-rf", 1);
    symlinkSync(write("elsewhere", 8), join(path, "link"));
    const [bytes = 0] = (await diskUsed([path])) ?? [];
    expect(bytes / 1024 / 1024).toBeCloseTo(1, 0);
    expect(await diskUsed([])).toEqual([]);
    expect(await diskUsed([path, join(folder, "gone")])).toBeNull();
  });
});

describe("a deployment of a site whose volumes hold more than its pack has", () => {
  const run = runSpec({ volumes: [{ name: "data", mountPath: "/data" }] });
  run.limits.diskGb = 2;
  const args = (changes: Partial<JobArgs<"site.deploy">> = {}) => deployArgs({ run, ...changes });
  const host = (volumesMb: number | null) =>
    ({
      volumesMb: () => Promise.resolve(volumesMb),
      imageRepository: () => "r",
      engine: {
        removeContainer: () => Promise.resolve(),
        removeImage: () => Promise.resolve(),
        removeNetwork: () => Promise.resolve(),
      },
      workDirectory: folder,
      settings: { buildCaFile: null },
      buildRoom: { demandDisk: () => Promise.reject(new Error("it went on")) },
    }) as unknown as Host;
  const job = jobRun();

  it("is refused with the reason before anything is built", async () => {
    await expect(deploySite(host(2049), args({ rebuild: true }), job)).rejects.toThrow(
      /volumes hold 2\.0 GB and its pack has 2 GB: remove files/,
    );
  });

  it("goes on where there is room, or nobody can tell, and as a rollback", async () => {
    for (const megabytes of [2048, 0, null])
      await expect(deploySite(host(megabytes), args({ rebuild: true }), job)).rejects.toThrow("it went on");
    const rollback = args({
      source: { type: "kept", deploymentId: formatId("deployment", 1, new Uint8Array(10)) },
      kept: [],
    });
    await expect(deploySite(host(9999), rollback, job)).rejects.toThrow(/image of that deployment/);
  });
});

it.each([
  [1843, 2, null],
  [1844, 2, /nearly full: .*volumes hold is 1\.8 GB, and its pack has 2 GB/],
  [2049, 2, /is over its disk/],
  [null, 2, null],
  // A pack without a limit.
  [9999, 0, null],
])("of %s MB of a pack with %s GB its owner is told: %s", (heldMb, diskGb, told) => {
  const said = nearPack({ siteId: "s", containerIds: [], heldMb, diskGb });
  expect(said).toEqual(told && expect.stringMatching(told));
});

describe("whom an image runs as", () => {
  const passwd = "root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1001::/home/node:/bin/sh\n";
  const group = "root:x:0:\nstaff:x:50:node\n";
  it.each([
    ["", { uid: 0, gid: 0 }],
    ["node", { uid: 1000, gid: 1001 }],
    ["1000", { uid: 1000, gid: 1001 }],
    ["4321", { uid: 4321, gid: 0 }],
    ["4321:99", { uid: 4321, gid: 99 }],
    ["node:staff", { uid: 1000, gid: 50 }],
    ["1000:50", { uid: 1000, gid: 50 }],
    ["nobody", null],
    ["node:nobody", null],
    ["-1", null],
  ])("%j", (user, owner) => expect(ownerOf(user, passwd, group)).toEqual(owner));
});
