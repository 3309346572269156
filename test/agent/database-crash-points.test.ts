import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Stopped } from "../../agent/failure.ts";
import { containerName, volumeName } from "../../agent/docker/database-objects.ts";
import { fingerprintText, type StoredBackup } from "../../protocol/agent/backups.ts";
import type { DatabaseSpec, Job, JobArgs, JobKind } from "../../protocol/agent/jobs.ts";
import { formatId } from "../../protocol/ids.ts";
import { after, closeMachines, Machine, openMachines, throughAllCrashes } from "../support/crash-points.ts";
import { databaseSpec } from "../support/database-spec.ts";
import { changes } from "../support/memory-redis.ts";

beforeAll(openMachines);
afterAll(closeMachines);

const idOf = <K extends "database" | "account" | "backup" | "job">(kind: K, number = 1) =>
  formatId(kind, number, new Uint8Array(10));
const { databaseId, accountId } = { databaseId: idOf("database"), accountId: idOf("account") };
const backupId = idOf("backup");
const database = databaseSpec({ databaseId, accountId, type: "redis" });
const jobOf = <K extends JobKind>(kind: K, args: JobArgs<K>) =>
  ({ id: idOf("job", jobs.indexOf(kind) + 1), kind, args }) as unknown as Job;
const jobs = ["database.provision", "database.backup", "database.restore"] as JobKind[];
const with_ = (kind: "provision" | "start" | "restart" | "rotate", spec: DatabaseSpec = database) =>
  jobOf(`database.${kind}`, { database: spec });
const backUp = (serving: boolean) => jobOf("database.backup", { database, backupId, attempt: 1, serving });
const stop = jobOf("database.stop", { databaseId, accountId });
const remove = jobOf("database.delete", { databaseId, accountId });
const rows = '{"kept":"kept"}';
const publicAccess = { port: 40_001, allow: ["0.0.0.0/0"] };

/** A machine with the database's image, on which these were done. */
async function machineAfter(...done: Job[]): Promise<Machine> {
  const machine = new Machine();
  machine.docker.state.images[database.image] = "sha256:redis";
  return after(machine, ...done);
}

/** One on which a database runs, with rows. */
async function provisioned(): Promise<Machine> {
  const machine = await machineAfter(with_("provision", database));
  write(machine, rows);
  return machine;
}
const filesOf = ({ docker }: Machine) => docker.state.volumes[volumeName(databaseId)]?.files ?? {};
const write = (machine: Machine, text: string) => void (filesOf(machine)[changes] = text);

const databaseCrashes = (machine: Machine, job: Job) => throughAllCrashes(machine, job, "not");
/** As the record has what the machine's store keeps. */
function storedIn({ stored }: Machine): StoredBackup {
  const { sizeBytes, sha256, fingerprint } = stored.get(backupId)!;
  const fingerprintSha256 = createHash("sha256").update(fingerprintText(fingerprint)).digest("hex");
  return { backupId, attempt: 1, databaseName: database.databaseName, sizeBytes, sha256, fingerprintSha256 };
}

describe("an agent may end before any step of a database's", () => {
  it("first start", async () => {
    await databaseCrashes(await machineAfter(), with_("provision"));
  });

  it("start, stop and restart", async () => {
    const machine = await provisioned();
    await databaseCrashes(machine, with_("restart"));
    await databaseCrashes(machine, stop);
    await databaseCrashes(await after(machine, stop), with_("start"));
    expect(filesOf(machine)[changes]).toBe(rows);
  });

  it("change of password, and the end of the old one", async () => {
    const machine = await provisioned();
    const next = { username: `${database.databaseName}_2`, password: "next" };
    const both = { ...database, logins: [...database.logins, next] };
    await databaseCrashes(machine, with_("rotate", both));
    await databaseCrashes(
      await after(machine, with_("rotate", both)),
      with_("rotate", { ...database, logins: [next] }),
    );
  });

  it("opening to the internet, its closing, and a stop of an open one", async () => {
    const machine = await provisioned();
    const open = jobOf("database.expose", { database: { ...database, publicAccess }, generation: 1 });
    await databaseCrashes(machine, open);
    await after(machine, open);
    await databaseCrashes(machine, jobOf("database.expose", { database, generation: 2 }));
    await databaseCrashes(machine, stop);
    await databaseCrashes(machine, remove);
  });

  it("deletion, which leaves nothing", async () => {
    const machine = await provisioned();
    await databaseCrashes(machine, remove);
    const { images, ...left } = (await after(machine, remove)).holds();
    expect({ ...left, images: [] }).toEqual(new Machine().holds());
    expect(images).toEqual([database.image]);
  });

  it("backup, of one that runs and of one that was stopped meanwhile", async () => {
    const machine = await provisioned();
    await databaseCrashes(machine, backUp(true));
    await databaseCrashes(await after(machine, stop), backUp(false));
  });

  it.each(["is told to end", "finds that the server does not start"])(
    "and a backup of a stopped one that %s leaves it stopped",
    async (what) => {
      const machine = await after(await provisioned(), stop);
      const before = machine.holds();
      const over = new AbortController();
      const { engine } = machine.docker;
      const start = engine.startContainer.bind(engine);
      engine.startContainer = async (id) => {
        await start(id);
        if (what === "is told to end") over.abort(new Stopped("cancelled", "Cancelled."));
        else throw new Error("the engine is gone");
      };
      const agent = await machine.agent();
      await expect(agent.does(backUp(false), 1, { signal: over.signal })).rejects.toThrow();
      agent.close();
      expect(machine.holds()).toEqual(before);
    },
  );

  it.each([true, false])("restore, of one that serves: %s", async (serving) => {
    const machine = await provisioned();
    await after(machine, backUp(true));
    write(machine, '{"later":"1","still":"2"}');
    if (!serving) await after(machine, stop);
    const backup = storedIn(machine);
    const restore = jobOf("database.restore", { database, backup, serving });
    await databaseCrashes(machine, restore);
    await after(machine, restore);
    expect(machine.docker.state.volumes[volumeName(databaseId, restore.id)]?.files[changes]).toBe(rows);
    // Once the record names it, and says that the other was replaced, that one goes.
    const named = { ...database, volume: restore.id };
    await databaseCrashes(machine, jobOf("database.start", { database: named, replacedVolumes: [null] }));
    await after(machine, jobOf("database.start", { database: named, replacedVolumes: [null] }));
    expect(Object.keys(machine.docker.state.volumes)).toEqual([volumeName(databaseId, restore.id)]);
  });

  it.each(["is told to end", "finds that the server does not start any more"])(
    "and a restore that changes over and then %s leaves the old data serving, and nothing of the new",
    async (what) => {
      const machine = await provisioned();
      await after(machine, backUp(true));
      write(machine, '{"later":"1"}');
      const restore = jobOf("database.restore", { database, backup: storedIn(machine), serving: true });
      // The agent ended before it could say that it had changed over.
      if (what !== "is told to end") await after(machine, restore);
      const over = new AbortController();
      const { engine } = machine.docker;
      const start = engine.startContainer.bind(engine);
      engine.startContainer = async (id) => {
        await start(id);
        if (machine.docker.find(id)?.labels["berth.volume"] !== volumeName(databaseId, restore.id)) return;
        if (what === "is told to end") over.abort(new Stopped("deadline", "It took too long."));
        else throw new Error("the engine is gone");
      };
      const agent = await machine.agent();
      await expect(agent.does(restore, 2, { signal: over.signal })).rejects.toThrow();
      agent.close();
      expect(machine.docker.find(`berth-${databaseId}`)).toMatchObject({
        running: true,
        labels: { "berth.volume": volumeName(databaseId) },
      });
      expect(Object.keys(machine.docker.state.volumes)).toEqual([volumeName(databaseId)]);
      expect(filesOf(machine)[changes]).toBe('{"later":"1"}');
    },
  );

  it.each([true, false])(
    "and a restore over a server that no longer starts does not need it; if the backup is good: %s",
    async (isGood) => {
      const machine = await provisioned();
      await after(machine, backUp(true));
      const old = volumeName(databaseId);
      const { engine } = machine.docker;
      await engine.stopContainer(containerName(databaseId), 1);
      const start = engine.startContainer.bind(engine);
      engine.startContainer = async (id) => {
        if (machine.docker.find(id)?.labels["berth.volume"] === old) throw new Error("it ended");
        await start(id);
      };
      const backup = storedIn(machine);
      const sha256 = isGood ? backup.sha256 : "0".repeat(64);
      const restore = jobOf("database.restore", { database, backup: { ...backup, sha256 }, serving: true });
      const agent = await machine.agent();
      const result = await agent.does(restore);
      agent.close();
      const { volumes } = machine.docker.state;
      expect(volumes[old]?.files[changes]).toBe(rows);
      if (isGood) {
        expect(result).toMatchObject({ damage: null, volume: restore.id });
        expect(volumes[volumeName(databaseId, restore.id)]?.files[changes]).toBe(rows);
      } else expect(result).toEqual({ damage: expect.stringContaining("SHA-256") });
    },
  );

  it("and a restore whose copy the engine did not remove begins anew, in an empty volume", async () => {
    const machine = await provisioned();
    await after(machine, backUp(true));
    const restore = jobOf("database.restore", { database, backup: storedIn(machine), serving: true });
    const volume = volumeName(databaseId, restore.id);
    const { engine, state } = machine.docker;
    await engine.ensureVolume(volume, state.volumes[volumeName(databaseId)]?.labels ?? {});
    state.volumes[volume]!.files["half"] = "restored";
    const copy = await engine.createContainer({
      name: `berth-copy-${restore.id}`,
      Image: database.image,
      Labels: {},
      HostConfig: { Mounts: [{ Type: "volume", Source: volume, Target: "/data" }] },
    } as unknown as Parameters<typeof engine.createContainer>[0]);
    await after(machine, restore);
    expect(machine.docker.find(copy)).toBeUndefined();
    expect(state.volumes[volume]?.files).toMatchObject({ [changes]: rows });
    expect(state.volumes[volume]?.files).not.toHaveProperty("half");
  });

  it("verification of a backup", async () => {
    const machine = await provisioned();
    await after(machine, backUp(true));
    const backup = storedIn(machine);
    await databaseCrashes(machine, jobOf("database.verify", { like: database, backup }));
  });
});
