import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Schedule } from "../../protocol/api/schedules.ts";
import { contextOf } from "../../worker/compose.ts";
import type { Ctx } from "../../worker/ctx.ts";
import { reconcileBackups } from "../../worker/jobs/backups/reconcile.ts";
import { reapJobs } from "../../worker/jobs/reap.ts";
import { runDueSchedules } from "../../worker/services/schedules/run-due.ts";
import { issueRenewals } from "../../worker/billing/terms/issue.ts";
import { account, api, bindings, createSite, pay, readyAgent, runningSite, site } from "./service.ts";
import { rows } from "./stripe-service.ts";
import { dayMs, invoicesOf } from "./terms-service.ts";

const ctx = (changes: Partial<Ctx> = {}): Ctx => ({
  ...contextOf(bindings, { type: "system" }, () => undefined),
  ...changes,
});
const sql = (statement: string, ...values: unknown[]) =>
  bindings.DB.prepare(statement)
    .bind(...values)
    .run();

let logged: string[];
beforeEach(() => {
  logged = [];
  vi.spyOn(console, "error").mockImplementation((line: string) => void logged.push(line));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await sql("DELETE FROM jobs");
});

describe("one row that cannot be worked on is logged, and holds up no other of its minute:", () => {
  it("a job that outlived its deadline", async () => {
    const key = await account();
    const sites = [];
    for (const _ of [1, 2]) {
      const { siteId, invoiceToken } = await createSite(key);
      await pay(invoiceToken);
      sites.push(siteId);
    }
    await sql("UPDATE jobs SET deadline_at = 1");
    await sql(`CREATE TRIGGER stuck BEFORE UPDATE ON jobs WHEN NEW.site_id = '${sites[0]}'
      BEGIN SELECT RAISE(ABORT, 'this one is stuck'); END`);
    await reapJobs(ctx());
    await sql("DROP TRIGGER stuck");
    expect((await site(key, sites[1]!)).status).toBe("FAILED");
    expect(logged.join()).toMatch(/this one is stuck/);
  });

  it("a schedule", async () => {
    const key = await account();
    const on = await readyAgent();
    const { siteId } = await runningSite(key, on);
    on.close();
    const ids: string[] = [];
    for (let number = 1; number <= 12; number++) {
      const input = { name: `clean-up-${number}`, cron: "* * * * *", command: "true" };
      const { body } = await api<Schedule>(key, "POST", `/sites/${siteId}/schedules`, input);
      ids.push(body.id);
      await sql("UPDATE schedules SET next_run_at = ? WHERE id = ?", number * 60_000, body.id);
    }
    await sql("UPDATE schedules SET cron = 'whenever' WHERE id = ?", ids[0]);
    await runDueSchedules(ctx());
    expect(await rows("SELECT id FROM schedules WHERE next_run_at < ?", dayMs)).toEqual([{ id: ids[0] }]);
    expect(logged.join()).toContain(ids[0]);
  });

  it("a term that ends", async () => {
    const key = await account();
    const on = await readyAgent();
    const [bad, good] = [await runningSite(key, on), await runningSite(key, on)];
    on.close();
    const [other] = await rows<{ id: string }>(
      "SELECT id FROM packs WHERE kind = 'site' AND id NOT IN (SELECT pack_id FROM sites)",
    );
    await sql("UPDATE packs SET discounts = 'none' WHERE id = ?", other?.id);
    await sql("UPDATE sites SET pack_id = ?, paid_until = 1 WHERE id = ?", other?.id, bad.siteId);
    await sql("UPDATE sites SET paid_until = 2 WHERE id = ?", good.siteId);
    await issueRenewals(ctx());
    expect(await invoicesOf(good.siteId)).toHaveLength(1);
    expect(logged.join()).toContain(bad.siteId);
  });

  it("a backup that is to go", async () => {
    const ids = ["bak_first", "bak_second"];
    for (const id of ids)
      await sql(
        `INSERT INTO backups (id, database_id, account_id, status, "trigger", name, database_name, type, version, image,
           pack_id, verifications, created_at, removed_at)
         SELECT ?, 'db_gone', a.id, 'FAILED', 'api', 'n', 'n', 'redis', '7', 'redis:7.2', p.id, 0, 1, 1
         FROM accounts a, packs p LIMIT 1`,
        id,
      );
    const { backups } = ctx();
    const remove: typeof backups.remove = (folder) =>
      folder.includes("first") ? Promise.reject(new Error("10001: internal error")) : backups.remove(folder);
    await reconcileBackups(ctx({ backups: { ...backups, remove } }));
    expect(await rows("SELECT id FROM backups")).toEqual([{ id: "bak_first" }]);
    expect(logged.join()).toContain("bak_first");
  });
});
