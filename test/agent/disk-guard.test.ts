import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Engine } from "../../agent/docker/engine.ts";
import type { Ingress } from "../../agent/ingress/ingress.ts";
import { DiskGuard } from "../../agent/running/disk-guard.ts";
import type { Holding } from "../../agent/running/disk-use.ts";
import { formatId } from "../../protocol/ids.ts";
import { openRecords, type Crash, type Records } from "../../agent/running/records.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const gibibyte = 1024 ** 3;
let folder: string;
let records: Records;

beforeEach(() => {
  folder = temporaryFolder();
  records = openRecords(join(folder, "running.db"));
});
afterEach(() => {
  records.close();
});

type Labels = Record<string, string>;

/** A host with these containers, each of which serves the site it names; `heldMb` of each site. */
function hostWith(containers: Record<string, Labels>, heldMb: Record<string, number | null>) {
  const done: string[] = [];
  // What is done twice is done once.
  const does = (what: string) => Promise.resolve(void (done.includes(what) || done.push(what)));
  const crashes: Crash[] = [];
  const parked = new Set<string>();
  const disk = { freeBytes: 10 * gibibyte, totalBytes: 40 * gibibyte, bytesPerFile: 0 };
  const serving = (siteId: string) =>
    Object.keys(containers).filter((id) => containers[id]?.["berth.site"] === siteId);
  const engine = {
    listContainers: (labels: Labels) =>
      Promise.resolve(
        Object.entries(containers)
          .filter(([, own]) => Object.entries(labels).every(([key, value]) => own[key] === value))
          .map(([id, own]) => ({ id, name: id, labels: own, running: !done.includes(`stop ${id}`) })),
      ),
    inspectContainer: (id: string) => Promise.resolve({ id, env: [], labels: containers[id] }),
    lastLines: () => Promise.resolve(["filling"]),
    stopContainer: (id: string) => does(`stop ${id}`),
    removeContainer: (id: string) => does(`remove ${id}`),
  } as unknown as Engine;
  const ingress = {
    current: (siteId: string) =>
      parked.has(siteId) ? "parked" : serving(siteId).map((containerId) => ({ containerId })),
    fallback: () => null,
    withdraw: (siteId: string) => {
      write();
      return Promise.resolve(void parked.add(siteId));
    },
  } as unknown as Ingress;
  /** Where there is no room at all, until what wrote it all is gone. */
  const write = () => {
    if (disk.freeBytes === 0 && !done.some((what) => what.startsWith("remove")))
      throw new Error("no space left on device");
  };
  let rounds = 0;
  const measured: string[] = [];
  const guard = new DiskGuard({
    engine,
    ingress,
    records: {
      ...records,
      addEvent(...event) {
        write();
        records.addEvent(...event);
      },
    },
    agentId: "a",
    disk: () => Promise.resolve(disk),
    minFreeMb: 2048,
    onCrash: (crash) => crashes.push(crash),
    databases: () => Promise.resolve(new Map([["db_1", "container"]])),
    diskUse: {
      of: (id) => {
        measured.push(id);
        return Promise.resolve({ volumes: [], writtenMb: 1, totalMb: 1 });
      },
      holdings: (siteId, ids, beside, count) => {
        const { bytesPerFile = 0, limitMs = 0 } = count ?? {};
        rounds++;
        // Of two that only a longer walk counts, one has too many files.
        const isUncounted = siteId.startsWith("slow") && limitMs === 0;
        const held = isUncounted ? null : bytesPerFile > 0 ? 1025 : (heldMb[siteId] ?? null);
        return Promise.resolve(
          [ids, ...beside.map(({ id }) => [id])]
            .filter((one) => one.length > 0)
            .map((containerIds): Holding => ({ siteId, containerIds, heldMb: held, diskGb: 1 })),
        );
      },
    },
  });
  return { guard, disk, done, crashes, measured, rounds: () => rounds };
}

const s1 = formatId("site", 1, new Uint8Array(10));
const site = (siteId: string): Labels => ({
  "berth.managed": "true",
  "berth.agent": "a",
  "berth.site": siteId,
  "berth.database": "",
  "berth.deployment": `dep_${siteId.replace("site_", "")}`,
  "berth.secrets": "",
});
const command = (siteId: string): Labels => ({
  ...site(siteId),
  "berth.site": "",
  "berth.commands-of": siteId,
});
const database: Labels = { ...site(""), "berth.site": "", "berth.database": "db_1" };

it("asks nothing of the engine while there is room", async () => {
  const { guard, rounds } = hostWith({ one: site("s1") }, { s1: 9999 });
  await guard.look();
  expect(rounds()).toBe(0);
});

it("measures databases once the disk has lost 256 MB since, and whenever it is short", async () => {
  const { guard, disk, measured } = hostWith({ database }, {});
  await guard.look();
  disk.freeBytes -= 200 * 1024 ** 2;
  await guard.look();
  expect(measured).toEqual([]);
  disk.freeBytes -= 100 * 1024 ** 2;
  await guard.look();
  await expect.poll(() => measured).toEqual(["db_1"]);
  expect(guard.isShort).toBe(false);
  disk.freeBytes = gibibyte;
  await guard.look();
  await expect.poll(() => measured.length).toBe(2);
  expect(guard.isShort).toBe(true);
});

it("stops who is beyond its pack when the disk is short, with the reason, and nobody else", async () => {
  const { guard, disk, done, crashes } = hostWith(
    { hog: site(s1), within: site("s2"), unknown: site("s3"), database },
    { [s1]: 1025, s2: 1024, s3: null },
  );
  disk.freeBytes = gibibyte;
  await guard.look();
  expect(done).toEqual(["stop hog", "remove hog"]);
  expect(crashes).toMatchObject([
    {
      siteId: s1,
      deploymentId: s1.replace("site_", "dep_"),
      error: expect.stringMatching(/wrote more than its pack's disk.*1\.0 GB.*1 GB.*filling/s),
    },
  ]);
  expect(records.events(s1).map(({ kind }) => kind)).toEqual(["disk_full"]);
  expect(records.crashes()).toMatchObject([{ isOut: true }]);
});

it("stops commands of a site that is, and a command by itself where nothing serves", async () => {
  const { guard, disk, done } = hostWith(
    { hog: site("s1"), itsCommand: command("s1"), alone: command("s2") },
    { s1: 2000, s2: 2000 },
  );
  disk.freeBytes = gibibyte;
  await guard.look();
  expect(done.toSorted()).toEqual(["remove hog", "stop alone", "stop hog", "stop itsCommand"]);
});

it("makes room on a disk that has none left, though it can write nothing down before", async () => {
  const { guard, disk, done, crashes } = hostWith(
    { hog: site("s1"), itsCommand: command("s1"), alone: command("s2") },
    { s1: 2000, s2: 2000 },
  );
  disk.freeBytes = 0;
  await guard.look();
  expect(done.toSorted()).toEqual(["remove hog", "stop alone", "stop hog", "stop itsCommand"]);
  expect(crashes).toMatchObject([{ siteId: "s1" }]);
  expect(records.events("s1").map(({ kind }) => kind)).toContain("disk_full");
});

it("counts on where files are too many for a short look, while others are measured, and only as long as the disk is short", async () => {
  const { guard, disk, done } = hostWith(
    { hog: site("slow1"), within: site("slow2"), quick: site("s3") },
    { slow1: 1025, slow2: 1024, s3: 10 },
  );
  disk.freeBytes = gibibyte;
  await guard.look();
  await expect.poll(() => done).toEqual(["stop hog", "remove hog"]);
});

it("stops who has more files than its part of the disk where those run out", async () => {
  const { guard, disk, crashes } = hostWith({ one: site("s1") }, { s1: 1 });
  Object.assign(disk, { freeBytes: gibibyte, bytesPerFile: 16384 });
  await guard.look();
  expect(crashes).toMatchObject([{ siteId: "s1" }]);
});

it("measures again as long as the disk gets fuller, and not while it stays as it is", async () => {
  const { guard, disk, rounds } = hostWith({ one: site("s1") }, { s1: 10 });
  disk.freeBytes = gibibyte;
  await guard.look();
  await guard.look();
  expect(rounds()).toBe(1);
  disk.freeBytes = gibibyte / 2;
  await guard.look();
  expect(rounds()).toBe(2);
});

it("lets a site be a fifth beyond its pack while the disk has room", async () => {
  const { guard, done } = hostWith({ one: site("s1") }, {});
  const holding = { siteId: "s1", containerIds: ["one"], diskGb: 1 };
  await guard.judge({ ...holding, heldMb: 1200 });
  expect(done).toEqual([]);
  await guard.judge({ ...holding, heldMb: 1300 });
  expect(done).toEqual(["stop one", "remove one"]);
});
