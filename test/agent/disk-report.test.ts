import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { cacheBytesOf } from "../../agent/docker/build-cache.ts";
import { reportDisk } from "../../agent/running/disk-report.ts";
import { formatId } from "../../protocol/ids.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const megabyte = 1024 * 1024;
const idOf = <Kind extends "site" | "database">(kind: Kind) => formatId(kind, 1, new Uint8Array(10));
const [siteId, databaseId] = [idOf("site"), idOf("database")];
const disk = { volumes: [{ name: "data", sizeMb: 20 }], writtenMb: 1.5, totalMb: 21.5 };

let folder: string;
beforeEach(() => (folder = temporaryFolder()));

const cached = (id: string, type = "exec.cachemount") => ({
  Type: type,
  Description: `cached mount /root/.npm from exec sh -c npm ci with id ${JSON.stringify(id)}`,
  Size: megabyte,
});

/** @param log the file of the only container's output; undefined: its log driver keeps none */
function meansWith(changes: { log?: string | undefined; buildCache?: () => Promise<never> } = {}) {
  const { log = join(folder, "c.log") } = changes;
  const agents: unknown[] = [];
  const means = {
    agentId: "a",
    engine: {
      listContainers: (labels: Record<string, string>) => {
        agents.push(labels["berth.agent"]);
        return Promise.resolve([{ id: "c", name: "c", labels: {}, running: true }]);
      },
      inspectContainer: () =>
        Promise.resolve(("log" in changes ? { logFile: changes.log } : { logFile: log }) as never),
      imageSizes: () =>
        Promise.resolve([
          { tag: "dep_1", sizeBytes: 2 * megabyte },
          { tag: "dep_2", sizeBytes: 3 * megabyte },
        ]),
      buildCache:
        changes.buildCache ?? (() => Promise.resolve([cached(`repo-${siteId}//a`), cached("repo-other//a")])),
    },
    records: { lastLinesBytes: () => megabyte },
    diskUse: { soon: () => Promise.resolve(disk), databases: () => [{ databaseId, usedMb: 48 }] },
    imageRepository: (id: string) => `repo-${id}`,
  };
  return { means, agents };
}

describe("what a host says about its disk", () => {
  it("of a site is what it wrote, its volumes, images, logs with rotated ones and lines kept, and its cache", async () => {
    for (const end of ["", ".1"]) writeFileSync(join(folder, `c.log${end}`), Buffer.alloc(megabyte));
    const { means, agents } = meansWith();
    expect(await reportDisk(means, [siteId])).toEqual([
      {
        id: siteId,
        countedMb: 21.5,
        writtenMb: 1.5,
        volumes: disk.volumes,
        images: [
          { deploymentId: "dep_2", sizeMb: 3 },
          { deploymentId: "dep_1", sizeMb: 2 },
        ],
        logMb: 3,
        buildCacheMb: 1,
      },
    ]);
    expect(agents).toEqual(["a"]);
  });

  it("of a database is the volume that it runs on, and no image: that is everybody's", async () => {
    expect(await reportDisk(meansWith().means, [databaseId])).toMatchObject([
      { id: databaseId, countedMb: 48, writtenMb: 0, images: [], buildCacheMb: 0 },
    ]);
  });

  it("is null where it cannot be measured", async () => {
    const { means } = meansWith({ log: undefined, buildCache: () => Promise.reject(new Error("busy")) });
    means.diskUse.soon = () => Promise.resolve(null as never);
    expect(await reportDisk(means, [siteId])).toMatchObject([
      { countedMb: null, writtenMb: null, volumes: [], logMb: null, buildCacheMb: null },
    ]);
  });
});

describe("a build cache", () => {
  it("belongs to the namespace that the engine names last, whatever a Dockerfile says before it", () => {
    const forged = {
      ...cached("other//x"),
      Description: `cached mount /x from exec echo with id "mine//x" with id "other//x"`,
    };
    const quoted = cached(`other//" with id "mine//x`);
    expect(cacheBytesOf([forged, quoted], "mine")).toBe(0);
    expect(cacheBytesOf([forged], "other")).toBe(megabyte);
    expect(
      cacheBytesOf([cached("mine//x"), cached("mine-too//x"), cached("mine//x", "regular")], "mine"),
    ).toBe(megabyte);
  });
});
