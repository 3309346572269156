import { sql, type SQL } from "drizzle-orm";
import { formatId, type IdKind } from "../../../protocol/ids.ts";
import type { Overview } from "../../../protocol/api/system.ts";
import { canMail } from "../../adapters/mail.ts";
import type { Ctx } from "../../ctx.ts";
import { addDays } from "../../domain/pricing.ts";
import { giveUpDays } from "../../mails/send-due.ts";
import { isStuck } from "../jobs/view.ts";
import { timeOf } from "../../domain/times.ts";

const hourMs = 3_600_000;

type Down = { id: string; name: string; since: number | null };
type Sum = { currency: string; amountCents: number; count: number };

/** The first id of this time: ids sort by time, so this begins a range of a primary key. */
const from = (kind: IdKind, time: Date) => formatId(kind, time.getTime(), new Uint8Array(10));
/** A JSON object of numbers by status. */
const byStatus = (table: SQL) =>
  sql`(SELECT json_group_object(status, n) FROM (SELECT status, count(*) AS n FROM ${table} GROUP BY status))`;
/** Amounts per currency. @param rows a table with currency and amount_cents */
const sums = (rows: SQL) =>
  sql`(SELECT json_group_array(json_object('currency', currency, 'amountCents', cents, 'count', n)) FROM (
    SELECT currency, sum(amount_cents) AS cents, count(*) AS n FROM ${rows} GROUP BY currency ORDER BY currency))`;

/** What an operator looks at first, in one statement. */
export async function getOverview(ctx: Ctx): Promise<Overview> {
  const now = ctx.now();
  const nowMs = now.getTime();
  const month = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1));
  const isDown = sql.raw("(connected_at IS NULL OR offline_since IS NOT NULL)");
  // `+` makes SQLite look for a database's backups by the database, not by the status that almost all have.
  const [row] = await ctx.db.all<Record<string, number | null> & Record<Json, string>>(sql`SELECT
    (SELECT count(*) FROM hosts WHERE status <> 'REMOVED' AND NOT ${isDown}) AS up,
    (SELECT count(*) FROM hosts WHERE status = 'DRAINING') AS draining,
    (SELECT json_group_array(json_object('id', id, 'name', name, 'since', offline_since)) FROM (
      SELECT * FROM hosts WHERE status <> 'REMOVED' AND ${isDown} ORDER BY id DESC LIMIT 100)) AS down,
    ${byStatus(sql`sites`)} AS sites,
    ${byStatus(sql`databases`)} AS databases,
    (SELECT count(*) FROM accounts WHERE deleted_at IS NULL) AS accounts,
    (SELECT count(*) FROM accounts WHERE deleted_at IS NULL AND id > ${from("account", addDays(now, -7))}) AS newAccounts,
    (SELECT count(*) FROM accounts WHERE suspended_at IS NOT NULL) AS suspended,
    (SELECT count(*) FROM jobs WHERE status = 'QUEUED') AS waiting,
    (SELECT count(*) FROM jobs WHERE status = 'LEASED') AS running,
    (SELECT count(*) FROM jobs WHERE ${isStuck(ctx)}) AS stuck,
    (SELECT min(created_at) FROM jobs WHERE status = 'QUEUED') AS oldestWaiting,
    (SELECT count(*) FROM deployments WHERE id > ${from("deployment", addDays(now, -2))}
      AND status IN ('LIVE', 'SUPERSEDED') AND finished_at > ${nowMs - hourMs}) AS live,
    (SELECT count(*) FROM deployments WHERE id > ${from("deployment", addDays(now, -2))}
      AND status = 'FAILED' AND finished_at > ${nowMs - hourMs}) AS failed,
    ${sums(sql`payments WHERE id >= ${from("payment", month)}`)} AS received,
    ${sums(sql`(SELECT i.currency, r.amount_cents FROM refunds r JOIN invoices i ON i.id = r.invoice_id
      WHERE r.id >= ${from("refund", month)} AND r.status = 'done')`)} AS refunded,
    ${sums(sql`invoices WHERE status = 'unpaid'`)} AS unpaid,
    (SELECT count(*) FROM payment_flags WHERE resolved_at IS NULL) AS flags,
    (SELECT count(*) FROM databases WHERE backup_failures > 0)
      + (SELECT count(*) FROM site_volumes WHERE backup_failures > 0) AS failing,
    (SELECT count(*) FROM databases d WHERE status = 'RUNNING' AND NOT EXISTS (
      SELECT 1 FROM backups WHERE database_id = d.id AND +status = 'VERIFIED' AND +removed_at IS NULL)) AS unprotected,
    (SELECT max(verified_at) FROM backups WHERE status = 'VERIFIED') AS lastVerified,
    (SELECT count(*) FROM mails WHERE sent_at IS NULL AND created_at > ${addDays(now, -giveUpDays).getTime()}) AS unsent,
    (SELECT min(created_at) FROM mails
      WHERE sent_at IS NULL AND created_at > ${addDays(now, -giveUpDays).getTime()}) AS oldestUnsent,
    (SELECT max(sent_at) FROM mails) AS lastSent,
    (SELECT ran_at FROM timer_runs) AS timerRan`);
  if (!row) throw new Error("A SELECT without FROM has one row");
  const count = (name: string) => row[name] ?? 0;
  const time = (name: string) => timeOf(row[name] ?? null);
  const parsed = <T>(name: Json) => JSON.parse(row[name]) as T;
  return {
    at: now.toISOString(),
    hosts: {
      up: count("up"),
      draining: count("draining"),
      down: parsed<Down[]>("down").map((host) => ({ ...host, since: timeOf(host.since) })),
    },
    sites: parsed("sites"),
    databases: parsed("databases"),
    accounts: { total: count("accounts"), newInAWeek: count("newAccounts"), suspended: count("suspended") },
    queue: {
      waiting: count("waiting"),
      running: count("running"),
      stuck: count("stuck"),
      oldestWaitingAt: time("oldestWaiting"),
    },
    deploymentsInAnHour: { live: count("live"), failed: count("failed") },
    money: {
      since: month.toISOString(),
      received: parsed<Sum[]>("received"),
      refunded: parsed<Sum[]>("refunded"),
      unpaid: parsed<Sum[]>("unpaid"),
      openFlags: count("flags"),
    },
    backups: {
      failing: count("failing"),
      unprotected: count("unprotected"),
      lastVerifiedAt: time("lastVerified"),
    },
    mail: {
      configured: canMail(ctx.config),
      waiting: count("unsent"),
      oldestWaitingAt: time("oldestUnsent"),
      lastSentAt: time("lastSent"),
    },
    timerRanAt: time("timerRan"),
  };
}
type Json = "down" | "sites" | "databases" | "received" | "refunded" | "unpaid";
