import { expect, it } from "vitest";
import type { Backup } from "../../../protocol/api/backups.ts";
import type { Database } from "../../../protocol/api/databases.ts";
import { answerNext, effectsOf, scene, useTool } from "../assistant.ts";
import { upload } from "../backup-uploads.ts";
import {
  api,
  call,
  deployResult,
  fail,
  finish,
  jobOf,
  runningDatabase,
  runningSite,
  site,
} from "../service.ts";

type Host = Awaited<ReturnType<typeof scene>>["host"];
const backup = async (key: string, id: string) => (await api<Backup>(key, "GET", `/backups/${id}`)).body;

/** The host stores a backup of this text, which is asked of it. */
async function store(
  host: Host,
  text = "a dump",
  kind: "database.backup" | "volume.backup" = "database.backup",
): Promise<string> {
  const { job, attempt } = await jobOf(host, kind);
  await upload(host, { job, attempt }, text, { tables: [], objects: {}, counters: [] });
  await finish(host, job, attempt, kind === "volume.backup" ? { consistent: true } : undefined);
  return job.args.backupId;
}

/** Takes the job that checks a backup by itself. */
async function check(host: Host): Promise<void> {
  const { job, attempt } = await jobOf(host, "database.verify");
  await finish(host, job, attempt, { damage: null });
}

async function withDatabase() {
  const { key, host } = await scene();
  return { key, host, ...(await runningDatabase(key, host)) };
}

async function withBackup() {
  const made = await withDatabase();
  await api(made.key, "POST", `/databases/${made.databaseId}/backups`);
  const id = await store(made.host);
  await check(made.host);
  return { ...made, id };
}

const volume = { name: "data", mountPath: "/data" };

/** A volume's backup, which a host has stored and checked. */
async function withVolumeBackup() {
  const { key, host } = await scene();
  const { siteId } = await runningSite(key, host, { name: "keeps", volumes: [volume] });
  const { result } = await useTool(key, "create_backup", { site: "keeps", volume: "data" });
  const id = await store(host, "files", "volume.backup");
  expect(result).toMatchObject({ id, volume: { siteId, name: "data" } });
  const { job, attempt } = await jobOf(host, "volume.verify");
  await finish(host, job, attempt, { damage: null });
  return { key, host, siteId, id };
}

effectsOf("backups", {
  create_backup: [
    "has the host back the database up, and it is stored",
    async () => {
      const { key, host, name } = await withDatabase();
      await useTool(key, "create_backup", { db: name });
      expect(await backup(key, await store(host))).toMatchObject({ status: "STORED", trigger: "chat" });
    },
  ],
  list_backups: [
    "shows what each proved, of one database and of all",
    async () => {
      const { key, name, id } = await withBackup();
      for (const input of [{ db: name }, {}]) {
        const { result } = await useTool(key, "list_backups", input);
        expect(result).toMatchObject([{ id, status: "VERIFIED", sizeBytes: 6 }]);
      }
    },
  ],
  verify_backup: [
    "has a host restore it beside and compare",
    async () => {
      const { key, host, id } = await withBackup();
      await useTool(key, "verify_backup", { backup: id });
      const { job } = await jobOf(host, "database.verify");
      expect(job.args.backup).toMatchObject({ backupId: id });
    },
  ],
  restore_backup: [
    "backs up what is there and restores after a yes that was told both",
    async () => {
      const { key, host, name, id } = await withBackup();
      const { asked } = await useTool(key, "restore_backup", { db: name, backup: id });
      expect(asked).toMatch(
        new RegExp(`Replace all data of the database ${name} .*VERIFIED.*taken first, and .* if that fails`),
      );
      const safety = await jobOf(host, "database.backup");
      await fail(host, safety.job, safety.attempt);
      const { job } = await jobOf(host, "database.restore");
      expect(job.args.backup).toMatchObject({ backupId: id });
    },
  ],
  delete_backup: [
    "removes its file after a yes",
    async () => {
      const { key, id } = await withBackup();
      await useTool(key, "delete_backup", { backup: id });
      expect((await api(key, "GET", `/backups/${id}`)).status).toBe(404);
    },
  ],
  set_backup_schedule: [
    "changes when it is backed up and how many are kept, after a yes where some of those that are there are deleted",
    async () => {
      const { key, host, name, databaseId } = await withBackup();
      await api(key, "POST", `/databases/${databaseId}/backups`);
      await store(host);
      await check(host);
      const schedule = "15 3 * * mon";
      for (const settings of [{ schedule }, { keep: 30 }, { keep: 2 }])
        await useTool(key, "set_backup_schedule", { db: name, settings }, { asks: false });
      const { asked } = await useTool(key, "set_backup_schedule", { db: name, settings: { keep: 1 } });
      expect(asked).toContain(`Keep 1 of the backups of the database ${name}: 1 older one is deleted.`);
      const { body } = await api<Database>(key, "GET", `/databases/${databaseId}`);
      expect(body.backups).toMatchObject({
        keep: 1,
        schedule,
        nextAt: expect.stringContaining("T03:15") as string,
      });
    },
  ],
  get_backup_download_link: [
    "shows the person an address that serves the file, after a yes, and the model none",
    async () => {
      const { key, id } = await withBackup();
      const { reply, result } = await useTool(key, "get_backup_download_link", { backup: id });
      const address = /https?:\S+\/backups\/\S+/.exec(reply.message)?.[0] ?? "";
      const { pathname, search } = new URL(address);
      expect(await (await call(pathname + search)).text()).toBe("a dump");
      expect(JSON.stringify(result)).not.toContain("/backups/");
    },
  ],
  browse_files: [
    "asks the host for a folder or a file, and tells why it cannot be shown",
    async () => {
      const { key, host } = await scene();
      const { siteId } = await runningSite(key, host, { name: "browsed" });
      const file = {
        kind: "file",
        path: "/app/a.txt",
        sizeBytes: 5,
        text: "hello",
        truncated: false,
      } as const;
      const using = useTool(key, "browse_files", { site: "browsed", path: "/app/a.txt" });
      const question = await answerNext(host, { kind: "files", found: file });
      expect(question).toEqual({ kind: "files", siteId, path: "/app/a.txt", volume: null, masks: [] });
      expect((await using).result).toEqual(file);
      const again = useTool(key, "browse_files", { site: "browsed", volume: "gone" });
      await answerNext(host, { kind: "refused", error: "The host has no such volume for the site." });
      expect((await again).reply.toolCalls).toMatchObject([{ tool: "browse_files", ok: false }]);
    },
  ],
  list_volumes: [
    "asks the host what they hold",
    async () => {
      const { key, host } = await scene();
      await runningSite(key, host, { name: "keeps", volumes: [volume] });
      const using = useTool(key, "list_volumes", { site: "keeps" });
      await answerNext(host, { kind: "volumes", volumes: [{ name: "data", sizeMb: 12.5 }] });
      expect((await using).result).toMatchObject({ data: [{ ...volume, mounted: true, sizeMb: 12.5 }] });
    },
  ],
  create_volume: [
    "adds one to those there are, and the next deployment mounts it",
    async () => {
      const { key, host } = await scene();
      const { siteId } = await runningSite(key, host, { name: "keeps", volumes: [volume] });
      await useTool(key, "create_volume", { site: "keeps", name: "uploads", path: "/srv/uploads" });
      await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
      const { job } = await jobOf(host, "site.deploy");
      expect(job.args.run.volumes).toEqual([volume, { name: "uploads", mountPath: "/srv/uploads" }]);
      expect((await site(key, siteId)).volumes).toHaveLength(2);
    },
  ],
  delete_volume: [
    "has the host delete the data of an unmounted one, after a yes",
    async () => {
      const { key, host } = await scene();
      const { siteId } = await runningSite(key, host, { name: "keeps", volumes: [volume] });
      await api(key, "PATCH", `/sites/${siteId}`, { settings: { volumes: [] } });
      await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
      const { job, attempt } = await jobOf(host, "site.deploy");
      await finish(host, job, attempt, deployResult);
      const volumes = { kind: "volumes" as const, volumes: [] };
      const refused = useTool(key, "delete_volume", { site: "keeps", name: "date" }, { asks: false });
      await answerNext(host, volumes);
      expect(JSON.stringify((await refused).result)).toContain("keeps no volume date");
      const using = useTool(key, "delete_volume", { site: "keeps", name: "data" });
      for (let count = 0; count < 2; count++) await answerNext(host, volumes);
      const question = await answerNext(host, { kind: "removeVolume" });
      expect(question).toEqual({ kind: "removeVolume", siteId, name: "data" });
      expect((await using).asked).toContain("There is no backup of it");
    },
  ],
});

it("backups of volumes are made, listed, scheduled, restored after a yes, and told before the volume is deleted", async () => {
  const { key, host, siteId, id } = await withVolumeBackup();
  for (const input of [{ site: "keeps", volume: "data" }, { site: "keeps" }])
    expect((await useTool(key, "list_backups", input)).result).toMatchObject([{ id, status: "VERIFIED" }]);
  const settings = { schedule: "15 3 * * mon", keep: 2 };
  const onVolume = { site: "keeps", volume: "data", settings };
  const scheduled = await useTool(key, "set_backup_schedule", onVolume, { asks: false });
  expect(scheduled.result).toMatchObject({ name: "data", backups: { keep: 2 } });
  const { asked } = await useTool(key, "restore_backup", { site: "keeps", volume: "copy", backup: id });
  expect(asked).toMatch(
    /Replace all data of the volume copy of the site keeps .*volume data of keeps.*VERIFIED/,
  );
  const { job } = await jobOf(host, "volume.restore");
  expect(job.args).toMatchObject({ siteId, volume: "copy", backup: { backupId: id } });
  for (const input of [{}, { site: "keeps" }, { db: "one", site: "keeps", volume: "data" }]) {
    const { reply } = await useTool(key, "create_backup", input);
    expect(reply.toolCalls).toEqual([{ tool: "create_backup", ok: false }]);
  }
});
