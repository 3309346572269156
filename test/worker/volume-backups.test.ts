import { beforeEach, describe, expect, it } from "vitest";
import type { JobKind } from "../../protocol/agent/jobs.ts";
import type { Backup, BackupLink, FailingBackups } from "../../protocol/api/backups.ts";
import type { SiteVolumes, VolumeChanged } from "../../protocol/api/site-volumes.ts";
import { suspendOfAccounts } from "../../worker/billing/terms/suspend.ts";
import { contextOf } from "../../worker/compose.ts";
import { reconcileBackups } from "../../worker/jobs/backups/reconcile.ts";
import { sha256, upload, type Taken } from "./backup-uploads.ts";
import {
  account,
  api,
  bindings,
  call,
  fail,
  finish,
  jobOf,
  operator,
  readyAgent,
  run,
  runningSite,
  uniqueName,
} from "./service.ts";

type Connected = Awaited<ReturnType<typeof readyAgent>>;
const data = { name: "data", mountPath: "/data" };
const ctx = () => contextOf(bindings, { type: "system" }, () => undefined);

let key: string;
let host: Connected;
let siteId: string;
let path: string;

beforeEach(async () => {
  await run("UPDATE hosts SET status = 'REMOVED'");
  key = await account();
  host = await readyAgent();
  ({ siteId } = await runningSite(key, host, { name: uniqueName("shop"), volumes: [data] }));
  path = `/sites/${siteId}/volumes/data`;
  return () => host.close();
});

const take = <K extends JobKind>(kind: K): Promise<Taken<K>> => jobOf(host, kind);

/** What the host does for a backup: it sends the archive, then reports. */
async function store({ job, attempt }: Taken<"volume.backup">, text = "an archive", consistent = true) {
  const fingerprint = {
    tables: [{ name: "entries", rows: "5", checksum: "1" }],
    objects: { files: "4", folders: "1" },
    counters: [],
  };
  await upload(host, { job, attempt }, text, fingerprint);
  await finish(host, job, attempt, { consistent });
}
async function check(damage: string | null = null) {
  const { job, attempt } = await take("volume.verify");
  await finish(host, job, attempt, { damage });
  return job;
}
const backup = async (id: string) => (await api<Backup>(key, "GET", `/backups/${id}`)).body;
async function backedUp(text?: string) {
  const { status, body } = await api<Backup>(key, "POST", `${path}/backups`);
  expect(status).toBe(202);
  await store(await take("volume.backup"), text);
  await check();
  return body.id;
}
async function volumes() {
  const asking = api<SiteVolumes>(key, "GET", `/sites/${siteId}/volumes`);
  const { requestId } = await host.next("ask");
  host.send({ type: "answer", requestId, answer: { kind: "volumes", volumes: [] }, last: true });
  return (await asking).body.data;
}
async function stop() {
  await api(key, "PATCH", `/sites/${siteId}`, { action: "stop" });
  const { job, attempt } = await take("site.stop");
  await finish(host, job, attempt);
}
const restore = (backupId: string, name = "data") =>
  api(key, "POST", `/sites/${siteId}/volumes/${name}/restore`, { backupId });

describe("a volume's backup", () => {
  it("is asked of the site's host, stored, verified, listed, downloaded and deleted like a database's", async () => {
    const asked = await api<Backup>(key, "POST", `${path}/backups`);
    expect([asked.status, asked.body]).toMatchObject([
      202,
      {
        status: "RUNNING",
        type: "volume",
        trigger: "api",
        databaseId: null,
        databaseName: null,
        consistent: null,
        volume: { siteId, name: "data" },
      },
    ]);
    const { id } = asked.body;
    const taken = await take("volume.backup");
    expect(taken.job.args).toEqual({ siteId, volume: "data", backupId: id, attempt: 1 });
    await store(taken, "an archive", false);
    expect(await backup(id)).toMatchObject({ status: "STORED", consistent: false, rows: 5, tables: null });
    const { args } = await check();
    expect(args.backup).toMatchObject({ backupId: id, sha256: sha256("an archive") });
    expect(args.backup).not.toHaveProperty("databaseName");
    expect(await backup(id)).toMatchObject({ status: "VERIFIED" });
    for (const list of [`${path}/backups`, "/backups", `/backups?siteId=${siteId}`])
      expect((await api<{ data: Backup[] }>(key, "GET", list)).body.data.map((one) => one.id)).toEqual([id]);
    const { url } = (await api<BackupLink>(key, "POST", `/backups/${id}/link`)).body;
    const { pathname, search } = new URL(url);
    const file = await call(pathname + search);
    expect(await file.text()).toBe("an archive");
    expect(file.headers.get("Content-Disposition")).toMatch(/filename="shop-\d+-data-.*\.tar\.gz"/);
    expect((await api(key, "DELETE", `/backups/${id}`)).status).toBe(202);
    expect((await api(key, "GET", `/backups/${id}`)).status).toBe(404);
  });

  it("delays no deployment of its site, and there is one at a time", async () => {
    await api(key, "POST", `${path}/backups`);
    expect((await api(key, "POST", `${path}/backups`)).status).toBe(409);
    const running = await take("volume.backup");
    await api(key, "PATCH", `/sites/${siteId}`, { action: "restart" });
    await take("site.restart");
    await store(running);
  });

  it("that fails or is damaged says why", async () => {
    const { id } = (await api<Backup>(key, "POST", `${path}/backups`)).body;
    const { job, attempt } = await take("volume.backup");
    await fail(host, job, attempt, "The host has no volume data of this site yet");
    expect(await backup(id)).toMatchObject({
      status: "FAILED",
      error: expect.stringContaining("no volume") as string,
    });
    const { id: damaged } = (await api<Backup>(key, "POST", `${path}/backups`)).body;
    await store(await take("volume.backup"));
    await check("Its file is shorter.");
    expect(await backup(damaged)).toMatchObject({ status: "FAILED", error: "Its file is shorter." });
  });

  it("is made by cron, and the newest that were verified are kept", async () => {
    const change = (body: object) => api<VolumeChanged>(key, "PATCH", path, body);
    expect((await change({ backups: { schedule: "*/5 * * * *" } })).status).toBe(400);
    const set = await change({ backups: { schedule: "15 3 * * mon", keep: 1 } });
    expect(set.body).toMatchObject({
      name: "data",
      backups: { keep: 1, nextAt: expect.stringContaining("T03:15") as string },
    });
    const first = await backedUp("first");
    await run("UPDATE site_volumes SET next_backup_at = 1 WHERE site_id = ?", siteId);
    await reconcileBackups(ctx());
    await reconcileBackups(ctx());
    const taken = await take("volume.backup");
    await store(taken, "second");
    await check();
    await reconcileBackups(ctx());
    expect((await api(key, "GET", `/backups/${first}`)).status).toBe(404);
    expect(await backup(taken.job.args.backupId)).toMatchObject({ status: "VERIFIED", trigger: "schedule" });
    expect((await change({ backups: { schedule: null } })).body.backups.nextAt).toBeNull();
  });

  it("outlives its volume and its site for thirty days", async () => {
    const id = await backedUp();
    await api(key, "DELETE", `/sites/${siteId}`);
    const { job, attempt } = await take("site.delete");
    await finish(host, job, attempt);
    const { expiresAt, createdAt } = await backup(id);
    const days = (Date.parse(expiresAt ?? "") - Date.parse(createdAt)) / 86_400_000;
    expect(days).toBeCloseTo(30, 1);
  });

  it("that waits for its host when its site is suspended is made all the same", async () => {
    host.close();
    const { id } = (await api<Backup>(key, "POST", `${path}/backups`)).body;
    await run(
      "UPDATE accounts SET suspended_at = 1 WHERE id = (SELECT account_id FROM sites WHERE id = ?)",
      siteId,
    );
    await suspendOfAccounts(ctx());
    host = await readyAgent(10, host.token);
    const jobs = [await host.next("job"), await host.next("job")];
    expect(jobs.map(({ job }) => job.kind).toSorted()).toEqual(["site.stop", "volume.backup"]);
    await store(jobs.find(({ job }) => job.kind === "volume.backup") as Taken<"volume.backup">);
    await check();
    expect(await backup(id)).toMatchObject({ status: "VERIFIED" });
  });

  it("that waits when its site is deleted ends", async () => {
    await run("UPDATE hosts SET slots = 0 WHERE id = ?", host.hostId);
    const { id } = (await api<Backup>(key, "POST", `${path}/backups`)).body;
    await api(key, "DELETE", `/sites/${siteId}`);
    const { status } = await backup(id);
    expect(["FAILED", "RUNNING"]).toContain(status);
    if (status === "RUNNING") await store(await take("volume.backup"));
    expect((await backup(id)).status).not.toBe("RUNNING");
  });

  it("that was being read while its host deleted the site has failed: files may be missing, of which the archive says nothing", async () => {
    const { id } = (await api<Backup>(key, "POST", `${path}/backups`)).body;
    const reading = await take("volume.backup");
    await api(key, "DELETE", `/sites/${siteId}`);
    const deletion = await take("site.delete");
    await finish(host, deletion.job, deletion.attempt);
    await store(reading);
    expect(await backup(id)).toMatchObject({
      status: "FAILED",
      error: expect.stringMatching(/deleted while/),
    });
  });
});

describe("a restore of a volume", () => {
  it("is refused while the site may use the volume, and of what is no volume's good backup", async () => {
    const id = await backedUp();
    const running = await restore(id);
    expect([running.status, JSON.stringify(running.body)]).toEqual([
      409,
      expect.stringContaining("Stop it first"),
    ]);
    expect((await restore("bak_001m80000000000000000000000")).status).toBe(404);
    const other = await account();
    expect((await api(other, "POST", `${path}/restore`, { backupId: id })).status).toBe(403);
    const { siteId: theirs } = await runningSite(other, host, { volumes: [data] });
    expect((await api(other, "POST", `/sites/${theirs}/volumes/new/restore`, { backupId: id })).status).toBe(
      403,
    );
  });

  it("backs up what is there first, then replaces it; a start waits for it", async () => {
    const id = await backedUp();
    await stop();
    expect((await restore(id)).status).toBe(202);
    expect((await restore(id)).status).toBe(409);
    await api(key, "PATCH", `/sites/${siteId}`, { action: "start" });
    const safety = await take("volume.backup");
    expect(await backup(safety.job.args.backupId)).toMatchObject({ trigger: "before-restore" });
    await store(safety, "what was there");
    const { job, attempt } = await take("volume.restore");
    expect(job.args).toMatchObject({
      siteId,
      volume: "data",
      diskGb: 2,
      backup: { backupId: id, sha256: sha256("an archive") },
    });
    expect((await volumes())[0]).toMatchObject({ restoring: true });
    await finish(host, job, attempt, { damage: null });
    const next = [await host.next("job"), await host.next("job")];
    expect(next.map((one) => one.job.kind).toSorted()).toEqual(["site.start", "volume.verify"]);
    expect((await volumes())[0]).toMatchObject({ restoring: false, restoreError: null });
  });

  it("goes into a new volume beside, while the site runs, and says why it failed", async () => {
    const id = await backedUp();
    expect((await restore(id, "Not A Name")).status).toBe(404);
    expect((await restore(id, "beside")).status).toBe(202);
    const { job, attempt } = await take("volume.restore");
    expect(job.args).toMatchObject({ volume: "beside" });
    await fail(host, job, attempt, "The host's disk is full");
    expect((await volumes()).find(({ name }) => name === "beside")).toMatchObject({
      mountPath: null,
      restoreError: expect.stringContaining("data is unchanged: The host's disk is full") as string,
    });
    expect(await backup(id)).toMatchObject({ status: "VERIFIED" });
    // A verification alone decides that a backup is damaged.
    expect((await restore(id, "beside")).status).toBe(202);
    const safety = await take("volume.backup");
    await fail(host, safety.job, safety.attempt);
    const again = await take("volume.restore");
    await finish(host, again.job, again.attempt, { damage: "Its file is shorter." });
    expect(await backup(id)).toMatchObject({ status: "STORED", error: "Its file is shorter." });
    await reconcileBackups(ctx());
    await check();
    expect(await backup(id)).toMatchObject({ status: "VERIFIED", error: null });
  });
});

describe("planned backups of a volume that fail", () => {
  const reason = "The volume could not be read: no space left on device";
  const mails = async () =>
    (
      await bindings.DB.prepare("SELECT subject, text FROM mails WHERE id LIKE ? ORDER BY created_at, id")
        .bind(`%${siteId}%`)
        .all<{ subject: string; text: string }>()
    ).results;
  const failing = async () =>
    (
      await api<{ data: FailingBackups[] }>(await operator(), "GET", "/backups/failing?limit=100")
    ).body.data.find(({ id }) => id === `${siteId}/data`);
  const shown = async () => (await volumes())[0]?.backups.failing;
  const planned = async () => {
    await run("UPDATE site_volumes SET next_backup_at = 1 WHERE site_id = ?", siteId);
    await reconcileBackups(ctx());
    return take("volume.backup");
  };
  const failOnce = async () => {
    const { job, attempt } = await planned();
    await fail(host, job, attempt, reason);
  };
  beforeEach(() => api(key, "PATCH", path, { backups: { schedule: "daily" } }));

  it("are mailed at the second in a row, seen by the operator, and said to work once one is verified", async () => {
    await failOnce();
    expect(await shown()).toEqual({ since: expect.any(String), times: 1, reason });
    expect(await mails()).toEqual([]);
    await failOnce();
    await failOnce();
    const [mail, ...more] = await mails();
    expect(more).toEqual([]);
    expect(mail?.subject).toMatch(/^Backups of data of shop-\d+ are failing$/);
    expect(mail?.text).toContain(`your volume data of shop`);
    expect(mail?.text).toContain(reason);
    expect(await failing()).toMatchObject({ type: "volume", times: 3, reason, hostId: host.hostId });
    const overview = await api<{ backups: { failing: number } }>(await operator(), "GET", "/overview");
    expect(overview.body.backups.failing).toBeGreaterThan(0);
    await backedUp();
    expect(await shown()).toBeNull();
    expect(await failing()).toBeUndefined();
    expect((await mails()).map(({ subject }) => subject.replace(/shop-\d+/, "shop"))).toEqual([
      "Backups of data of shop are failing",
      "Backups of data of shop work again",
    ]);
  });

  it("count where the copy is damaged, and not where the owner asked for them", async () => {
    await store(await planned());
    await check("The file a.txt is missing.");
    expect(await shown()).toMatchObject({ times: 1, reason: expect.stringContaining("a.txt") });
    await api(key, "POST", `${path}/backups`);
    const asked = await take("volume.backup");
    await fail(host, asked.job, asked.attempt, reason);
    expect(await shown()).toMatchObject({ times: 1 });
  });

  it("are listed page by page with those of databases", async () => {
    await failOnce();
    const page = async (cursor: string) =>
      (
        await api<{ data: FailingBackups[]; nextCursor: string | null }>(
          await operator(),
          "GET",
          `/backups/failing?limit=1${cursor}`,
        )
      ).body;
    const found = [];
    for (let cursor: string | null = ""; cursor !== null;) {
      const { data, nextCursor } = await page(cursor && `&cursor=${encodeURIComponent(cursor)}`);
      found.push(...data.map(({ id }) => id));
      cursor = nextCursor;
    }
    expect(found).toContain(`${siteId}/data`);
    expect(new Set(found).size).toBe(found.length);
    expect((await api(await operator(), "GET", "/backups/failing?cursor=site_1")).status).toBe(400);
  });
});
