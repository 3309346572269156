import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createHash } from "node:crypto";
import { containerName, volumeName } from "../../agent/docker/database-objects.ts";
import { volumeName as siteVolumeName } from "../../agent/docker/specs.ts";
import { fingerprintText } from "../../protocol/agent/backups.ts";
import type { Job, JobKind, RunSpec } from "../../protocol/agent/jobs.ts";
import { formatId } from "../../protocol/ids.ts";
import { after, appPort, closeMachines, Machine, openMachines } from "../support/crash-points.ts";
import { databaseSpec } from "../support/database-spec.ts";
import { deployArgs } from "../support/deploy-args.ts";
import { changes } from "../support/memory-redis.ts";
import { runSpec } from "../support/run-spec.ts";

beforeAll(openMachines);
afterAll(closeMachines);

const idOf = <K extends "database" | "account" | "backup" | "job" | "deployment">(kind: K, number = 1) =>
  formatId(kind, number, new Uint8Array(10));
const databaseId = idOf("database");
const database = databaseSpec({ databaseId, accountId: idOf("account"), type: "redis" });
const backupId = idOf("backup");
const jobOf = (kind: JobKind, args: object): Job => ({ id: idOf("job", 7), kind, args }) as unknown as Job;
const of = (kind: "provision" | "start" | "restart") => jobOf(`database.${kind}`, { database });
const backUp = jobOf("database.backup", { database, backupId, attempt: 1, serving: true });
const goneText = /Its data is not on this host: restore a backup/;
const mark = ".berth-database";
const filesOf = ({ docker }: Machine) => docker.state.volumes[volumeName(databaseId)]?.files ?? {};

async function provisioned(): Promise<Machine> {
  const machine = new Machine();
  machine.docker.state.images[database.image] = "sha256:redis";
  await after(machine, of("provision"));
  filesOf(machine)[changes] = '{"kept":"kept"}';
  return machine;
}

/** As after a disk that was changed, or a prune. */
async function loseVolume({ docker }: Machine): Promise<void> {
  await docker.engine.removeContainer(containerName(databaseId));
  await docker.engine.removeVolume(volumeName(databaseId));
}

describe("a database whose data is gone", () => {
  it.each([of("start"), of("restart"), backUp])("is not begun anew, empty, by a $kind", async (job) => {
    const machine = await provisioned();
    await loseVolume(machine);
    await expect(after(machine, job)).rejects.toThrow(goneText);
    expect(machine.docker.state).toMatchObject({ volumes: {}, containers: [] });
  });

  it("is not begun anew in a volume that was emptied either, nor in another database's", async () => {
    const machine = await provisioned();
    await machine.docker.engine.removeContainer(containerName(databaseId));
    const files = filesOf(machine);
    for (const name of Object.keys(files)) delete files[name];
    await expect(after(machine, of("start"))).rejects.toThrow(goneText);
    expect(machine.docker.state.containers).toEqual([]);
    files[mark] = idOf("database", 2);
    await expect(after(machine, of("start"))).rejects.toThrow(goneText);
  });

  it.each([true, false])("is there again by a restore, whether it was to serve: %s", async (serving) => {
    const machine = await provisioned();
    await after(machine, backUp);
    await loseVolume(machine);
    const { sizeBytes, sha256, fingerprint } = machine.stored.get(backupId)!;
    const fingerprintSha256 = createHash("sha256").update(fingerprintText(fingerprint)).digest("hex");
    const { databaseName } = database;
    const backup = { backupId, attempt: 1, databaseName, sizeBytes, sha256, fingerprintSha256 };
    const restore = jobOf("database.restore", { database, backup, serving });
    await after(machine, restore);
    const { files } = machine.docker.state.volumes[volumeName(databaseId, restore.id)]!;
    expect(files).toMatchObject({ [changes]: '{"kept":"kept"}', [mark]: databaseId });
  });

  it("is told from one that an agent before there were marks has used: that one gets its mark", async () => {
    const machine = await provisioned();
    delete filesOf(machine)[mark];
    await after(machine, of("restart"));
    expect(filesOf(machine)).toMatchObject({ [changes]: '{"kept":"kept"}', [mark]: databaseId });
  });
});

describe("a volume that a restore made after the moment to which the record was put back", () => {
  const restored = volumeName(databaseId, idOf("job", 8));

  it("stays when the database starts on the one that the record names", async () => {
    const machine = await provisioned();
    const { volumes } = machine.docker.state;
    volumes[restored] = { ...volumes[volumeName(databaseId)]!, files: { newer: "" } };
    await after(machine, of("start"));
    expect(volumes[restored]?.files).toEqual({ newer: "" });
    await after(machine, jobOf("database.start", { database, replacedVolumes: [null, idOf("job", 8)] }));
    expect(Object.keys(volumes)).toEqual([volumeName(databaseId)]);
  });

  it("stays when the first start, once more, fails", async () => {
    const machine = await provisioned();
    const { engine, state } = machine.docker;
    state.volumes[restored] = { ...state.volumes[volumeName(databaseId)]!, files: { newer: "" } };
    await loseVolume(machine);
    engine.startContainer = () => Promise.reject(new Error("the engine is gone"));
    await expect(after(machine, of("provision"))).rejects.toThrow("the engine is gone");
    expect(Object.keys(state.volumes)).toEqual([restored]);
  });
});

it("a first start that fails takes away nothing of a database that was in use, of which the record has forgotten that", async () => {
  const machine = await provisioned();
  const { engine } = machine.docker;
  await engine.removeContainer(containerName(databaseId));
  const startContainer = engine.startContainer.bind(engine);
  engine.startContainer = () => Promise.reject(new Error("the engine is gone"));
  await expect(after(machine, of("provision"))).rejects.toThrow("the engine is gone");
  engine.startContainer = startContainer;
  await after(machine, of("provision"));
  expect(filesOf(machine)[changes]).toBe('{"kept":"kept"}');
});

it("a site's volume that is gone is not begun anew, empty; one that its host never had is", async () => {
  const machine = new Machine();
  const volumes = [{ name: "data", mountPath: "/data" }];
  const run = (more: Partial<RunSpec> = {}) => runSpec({ port: appPort(), volumes, ...more });
  const deploymentId = idOf("deployment");
  const source = { type: "dockerfile", text: "FROM scratch" } as const;
  await after(machine, jobOf("site.deploy", deployArgs({ run: run(), deploymentId, source })));
  const volume = siteVolumeName(run().siteId, "data");
  expect(Object.keys(machine.docker.state.volumes)).toEqual([volume]);
  const { state } = machine.docker;
  state.containers = [];
  delete state.volumes[volume];
  const restart = jobOf("site.restart", { run: run({ heldVolumes: ["data"] }), deploymentId });
  await expect(after(machine, restart)).rejects.toThrow(/data of the volume data is not on this host/);
  expect(machine.docker.state).toMatchObject({ volumes: {}, containers: [] });
});
