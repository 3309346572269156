import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Job, JobKind } from "../../protocol/agent/jobs.ts";
import type { Database, DatabaseCreated } from "../../protocol/api/databases.ts";
import { addDays, addMonths } from "../../worker/domain/pricing.ts";
import { sendDueMails } from "../../worker/mails/send-due.ts";
import { sql as query } from "drizzle-orm";
import { addMonthsTo } from "../../worker/billing/terms/resource.ts";
import { contextOf } from "../../worker/compose.ts";
import type { RefundPreview } from "../../protocol/api/invoices.ts";
import { refundInvoice } from "../../worker/services/payments/refund.ts";
import { changePackOfDatabase, changePackOfSite } from "../../worker/services/terms/change-pack.ts";
import { tick } from "./hosts-service.ts";
import {
  account,
  api,
  bindings,
  createSite,
  deployResult,
  fail,
  finish,
  jobOf,
  operator,
  pay,
  readyAgent,
  run as sql,
  runningSite,
  site,
  siteUrl,
  uniqueName,
} from "./service.ts";
import { rows } from "./stripe-service.ts";
import { ctxAt, invoicesOf, mailsOf, payAt, reapAt, tickAt } from "./terms-service.ts";

let key: string;
let host: Awaited<ReturnType<typeof readyAgent>>;

beforeEach(async () => {
  await bindings.DB.prepare("UPDATE hosts SET status = 'REMOVED'").run();
  await bindings.DB.prepare("DELETE FROM sites").run();
  await bindings.DB.prepare("DELETE FROM databases").run();
  key = await account();
  host = await readyAgent();
  return () => host.close();
});
afterEach(() => vi.restoreAllMocks());

const take = (kind: JobKind) => jobOf(host, kind);
async function done(
  kind: JobKind,
  result: unknown = kind.startsWith("database.") ? { version: "17.2" } : {},
) {
  const { job, attempt } = await take(kind);
  await finish(host, job, attempt, kind === "database.stop" || kind === "database.delete" ? {} : result);
  return job;
}
const nothingToDo = () => expect(host.waiting().filter(({ type }) => type === "job")).toEqual([]);

type Made = { id: string; paidUntil: Date };
type Resource = {
  make: () => Promise<Made>;
  read: (id: string) => Promise<{ status: string; paidUntil: string | null; packId: string } | undefined>;
  jobs: Record<"stop" | "start" | "restart" | "delete", JobKind>;
  path: string;
};
const paidUntilOf = async (table: string, id: string) =>
  new Date(
    (await rows<{ paid_until: number }>(`SELECT paid_until FROM ${table} WHERE id = ?`, id))[0]?.paid_until ??
      0,
  );

const resources: [string, Resource][] = [
  [
    "site",
    {
      async make() {
        const { siteId } = await runningSite(key, host);
        return { id: siteId, paidUntil: await paidUntilOf("sites", siteId) };
      },
      read: async (id) => {
        const { status, body } = await api<Awaited<ReturnType<typeof site>>>(key, "GET", `/sites/${id}`);
        return status === 200 ? body : undefined;
      },
      jobs: { stop: "site.stop", start: "site.start", restart: "site.restart", delete: "site.delete" },
      path: "sites",
    },
  ],
  [
    "database",
    {
      async make() {
        const { body } = await api<DatabaseCreated>(key, "POST", "/databases", {
          name: uniqueName("data"),
          type: "postgresql",
        });
        await pay(body.invoiceToken);
        await done("database.provision");
        return { id: body.databaseId, paidUntil: await paidUntilOf("databases", body.databaseId) };
      },
      read: async (id) => {
        const { status, body } = await api<Database>(key, "GET", `/databases/${id}`);
        return status === 200 ? body : undefined;
      },
      jobs: {
        stop: "database.stop",
        start: "database.start",
        restart: "database.restart",
        delete: "database.delete",
      },
      path: "databases",
    },
  ],
];

describe.each(resources)("the term of a %s", (name, { make, read, jobs, path }) => {
  const shown = async (id: string) => {
    const found = await read(id);
    return found && [found.status, found.paidUntil];
  };
  /** Suspended, its container stopped; the time it was. */
  async function suspended(made: Made): Promise<Date> {
    await tickAt(addDays(made.paidUntil, -7));
    await tickAt(made.paidUntil);
    const time = addDays(made.paidUntil, 7);
    await tickAt(time);
    await done(jobs.stop);
    return time;
  }

  /** Deleted by its host; a database's last backup comes first, and does not hold it up. */
  async function deleted(): Promise<void> {
    if (name === "database") {
      const { job, attempt } = await jobOf(host, "database.backup");
      await fail(host, job, attempt, "Not in this test.");
    }
    await done(jobs.delete);
  }

  it("is renewed by one invoice, issued seven days before its end, and goes on from there without a restart", async () => {
    const { id, paidUntil } = await make();
    await tickAt(new Date(addDays(paidUntil, -7).getTime() - 1));
    expect(await invoicesOf(id)).toEqual([]);
    await Promise.all([1, 2, 3].map(() => tickAt(addDays(paidUntil, -7))));
    await tickAt(addDays(paidUntil, -3));
    const [renewal, ...more] = await invoicesOf(id);
    expect(more).toEqual([]);
    expect(renewal).toMatchObject({ kind: "renewal", status: "unpaid", due_at: paidUntil.getTime() });
    const [kind, pack, price] = name === "site" ? ["Site", "Starter", 500] : ["Database", "Starter", 700];
    const line = expect.stringMatching(`^${kind} [a-z0-9-]+: ${pack}, 1 month more$`);
    expect(JSON.parse(renewal?.lines ?? "")).toEqual([{ description: line, amountCents: price }]);
    const [mail] = await rows<{ text: string }>(
      "SELECT text FROM mails WHERE id = ?",
      `issued:${renewal?.id}`,
    );
    expect(mail?.text).toContain(`${price / 100}.00 USD`);
    expect(mail?.text).toContain(`${siteUrl}/invoice/${renewal?.token}`);
    expect((await api(key, "GET", `/invoices/${renewal?.id}`)).body).toMatchObject({
      kind: "renewal",
      resource: { id },
    });
    if (!renewal) return;
    expect(await payAt(addDays(paidUntil, -2), renewal)).toBe("settled");
    expect(await payAt(addDays(paidUntil, -2), renewal)).toBe("flagged");
    expect(await shown(id)).toEqual(["RUNNING", addMonths(paidUntil, 1).toISOString()]);
    await tickAt(addDays(paidUntil, 20));
    await reapAt(addDays(paidUntil, 20));
    expect(await mailsOf(id)).toEqual(["issued"]);
    nothingToDo();
  });

  it("paid in the days of grace goes on from its old end", async () => {
    const { id, paidUntil } = await make();
    await tickAt(addDays(paidUntil, -7));
    await tickAt(addDays(paidUntil, 6));
    expect((await read(id))?.status).toBe("RUNNING");
    const [renewal] = await invoicesOf(id);
    if (renewal) await payAt(addDays(paidUntil, 6), renewal);
    expect(await shown(id)).toEqual(["RUNNING", addMonths(paidUntil, 1).toISOString()]);
    expect(await mailsOf(id)).toEqual(["issued", "ended"]);
    await tickAt(addDays(paidUntil, 8));
    nothingToDo();
  });

  it("not paid ends in suspension after seven days: stopped, kept, and 402 with the invoice", async () => {
    const { id, paidUntil } = await make();
    await tickAt(addDays(paidUntil, -7));
    await tickAt(new Date(addDays(paidUntil, 7).getTime() - 1));
    expect((await read(id))?.status).toBe("RUNNING");
    await tickAt(addDays(paidUntil, 7));
    const { job, attempt } = await take(jobs.stop);
    const [renewal] = await invoicesOf(id);
    if (job.kind === "site.stop")
      expect(job.args.notice).toEqual({
        reason: "suspended",
        payUrl: `${siteUrl}/invoice/${renewal?.token}`,
      });
    await finish(host, job, attempt);
    expect((await read(id))?.status).toBe("SUSPENDED");
    for (const body of [{ action: "start" }, { packId: (await read(id))?.packId }]) {
      const refused = await api(key, "PATCH", `/${path}/${id}`, body);
      expect([refused.status, refused.body["invoiceToken"]]).toEqual([402, renewal?.token]);
    }
    const acted = await bindings.DB.prepare(
      "SELECT operation FROM activity WHERE resource_id = ? AND actor = 'system'",
    )
      .bind(id)
      .all<{ operation: string }>();
    expect(acted.results).toEqual([{ operation: name === "site" ? "suspendSite" : "suspendDatabase" }]);
    expect(await mailsOf(id)).toEqual(["issued", "ended", "suspended"]);
    // Not void by the rule for what was never paid.
    await tickAt(addDays(paidUntil, 20));
    expect((await invoicesOf(id)).map(({ status }) => status)).toEqual(["unpaid"]);
    await reapAt(addDays(paidUntil, 20));
    nothingToDo();
  });

  it("paid while suspended begins anew and starts what was running, by itself", async () => {
    const made = await make();
    await suspended(made);
    const [renewal] = await invoicesOf(made.id);
    const time = addDays(made.paidUntil, 30);
    if (renewal) await payAt(time, renewal);
    const status = name === "site" ? "DEPLOYING" : "STOPPED";
    expect(await shown(made.id)).toEqual([status, addMonths(time, 1).toISOString()]);
    await done(jobs.start);
    expect((await read(made.id))?.status).toBe("RUNNING");
    await tickAt(addDays(time, 1));
    await reapAt(addDays(time, 1));
    nothingToDo();
  });

  it("returns to STOPPED what its owner had stopped", async () => {
    const made = await make();
    await api(key, "PATCH", `/${path}/${made.id}`, { action: "stop" });
    await done(jobs.stop);
    await suspended(made);
    const [renewal] = await invoicesOf(made.id);
    const time = addDays(made.paidUntil, 20);
    if (renewal) await payAt(time, renewal);
    if (name === "site") expect(JSON.stringify(await done(jobs.stop))).not.toContain("notice");
    await tickAt(time);
    expect((await read(made.id))?.status).toBe("STOPPED");
    nothingToDo();
  });

  it("stops at once again where stopping failed, and says suspended all the while", async () => {
    const made = await make();
    await tickAt(addDays(made.paidUntil, -7));
    await tickAt(addDays(made.paidUntil, 7));
    const { job, attempt } = await take(jobs.stop);
    await fail(host, job, attempt);
    expect((await read(made.id))?.status).toBe("SUSPENDED");
    await tickAt(addDays(made.paidUntil, 8));
    await done(jobs.stop);
    await tickAt(addDays(made.paidUntil, 9));
    nothingToDo();
  });

  it("never paid is deleted thirty days after the suspension, a week after a warning, as by DELETE", async () => {
    const made = await make();
    const time = await suspended(made);
    await tickAt(addDays(time, 23));
    expect(await mailsOf(made.id)).toEqual(["issued", "ended", "suspended", "deletion"]);
    await tickAt(new Date(addDays(time, 30).getTime() - 1));
    expect((await read(made.id))?.status).toBe("SUSPENDED");
    await tickAt(addDays(time, 30));
    expect((await read(made.id))?.status).toBe("DELETING");
    expect((await invoicesOf(made.id)).map(({ status }) => status)).toEqual(["void"]);
    await deleted();
    expect(await read(made.id)).toBeUndefined();
  });

  it("is not deleted before its owner was sent the warning; an operator sees that it waits", async () => {
    const made = await make();
    const time = await suspended(made);
    await tickAt(addDays(time, 23), false);
    await tickAt(addDays(time, 29), false);
    const flags = () =>
      rows("SELECT reason, invoice_id FROM payment_flags WHERE reference LIKE ?", `${made.id}:%`);
    expect(await flags()).toEqual([]);
    await tickAt(addDays(time, 60), false);
    expect((await read(made.id))?.status).toBe("SUSPENDED");
    expect(await flags()).toEqual([{ reason: "owner_not_warned", invoice_id: null }]);
    // A service is set at last: the warning still goes out, however old it is.
    const sent: string[] = [];
    vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
      sent.push(await new Request(input, init).text());
      return new Response(null);
    });
    const withMail = contextOf(bindings, { type: "system" }, () => undefined);
    await sendDueMails({ ...withMail, now: () => addDays(time, 61) });
    vi.restoreAllMocks();
    expect(sent.filter((text) => text.includes("will be deleted"))).toHaveLength(1);
    await tickAt(addDays(time, 67), false);
    expect((await read(made.id))?.status).toBe("SUSPENDED");
    await tickAt(addDays(time, 68), false);
    expect((await read(made.id))?.status).toBe("DELETING");
    await deleted();
  });

  it("does not suspend or delete at once when the cron stood still for months", async () => {
    const made = await make();
    const late = addMonths(made.paidUntil, 4);
    await tickAt(late);
    expect((await read(made.id))?.status).toBe("RUNNING");
    await tickAt(addDays(late, 7));
    await done(jobs.stop);
    expect((await read(made.id))?.status).toBe("SUSPENDED");
    const later = addMonths(late, 5);
    await tickAt(later);
    expect((await read(made.id))?.status).toBe("SUSPENDED");
    await tickAt(addDays(later, 7));
    expect((await read(made.id))?.status).toBe("DELETING");
    await deleted();
  });

  /** A payment of the renewal is on its way. @returns what ends it without success */
  async function atTheBank(made: Made): Promise<() => Promise<unknown>> {
    const [renewal] = await invoicesOf(made.id);
    await sql(
      `INSERT INTO checkouts (id, invoice_id, number, processor, session_id, status, created_at, expires_at, check_at)
        VALUES (?1, ?2, 1, 'test', ?1, 'processing', 0, 9e15, 9e15)`,
      `chk_${made.id}`,
      renewal?.id,
    );
    return () => sql("UPDATE checkouts SET status = 'failed' WHERE id = ?", `chk_${made.id}`);
  }

  it("waits with the suspension while a payment is at the bank", async () => {
    const made = await make();
    await tickAt(addDays(made.paidUntil, -7));
    const fails = await atTheBank(made);
    await tickAt(addDays(made.paidUntil, 9));
    expect((await read(made.id))?.status).toBe("RUNNING");
    await fails();
    await tickAt(addDays(made.paidUntil, 9));
    expect((await read(made.id))?.status).toBe("SUSPENDED");
    await done(jobs.stop);
  });

  it("waits with the deletion while a payment is at the bank", async () => {
    const made = await make();
    const time = await suspended(made);
    await tickAt(addDays(time, 23));
    const fails = await atTheBank(made);
    await tickAt(addDays(time, 40));
    expect((await read(made.id))?.status).toBe("SUSPENDED");
    await fails();
    await tickAt(addDays(time, 40));
    expect((await read(made.id))?.status).toBe("DELETING");
    await deleted();
  });

  it("is not renewed of what is being deleted, nor while an operator has suspended the account", async () => {
    const made = await make();
    const week = addDays(made.paidUntil, -7);
    await sql(`UPDATE ${path} SET status = 'DELETING' WHERE id = ?`, made.id);
    await tickAt(week);
    expect(await invoicesOf(made.id)).toEqual([]);
    await sql(`UPDATE ${path} SET status = 'SUSPENDED', suspended_at = 1 WHERE id = ?`, made.id);
    const suspend = (at: number | null) =>
      sql(
        `UPDATE accounts SET suspended_at = ? WHERE id = (SELECT account_id FROM ${path} WHERE id = ?)`,
        at,
        made.id,
      );
    await suspend(1);
    await tickAt(week);
    expect(await invoicesOf(made.id)).toEqual([]);
    await suspend(null);
    await tickAt(week);
    expect((await invoicesOf(made.id)).map(({ status }) => status)).toEqual(["unpaid"]);
  });

  it("has another renewal where an operator made one void, and none twice", async () => {
    const made = await make();
    await tickAt(addDays(made.paidUntil, -7));
    const [first] = await invoicesOf(made.id);
    expect((await api(await operator(), "POST", `/invoices/${first?.id}/void`)).status).toBe(200);
    await tickAt(addDays(made.paidUntil, -6));
    expect((await invoicesOf(made.id)).map(({ status }) => status)).toEqual(["void", "unpaid"]);
  });

  it("is taken back with the money of a renewal, and renewed anew", async () => {
    const made = await make();
    await tickAt(addDays(made.paidUntil, -7));
    const [renewal] = await invoicesOf(made.id);
    await pay(renewal?.token ?? "");
    expect((await read(made.id))?.paidUntil).toBe(addMonths(made.paidUntil, 1).toISOString());
    const refunded = await api(await operator(), "POST", `/invoices/${renewal?.id}/refund`, {});
    expect([refunded.status, refunded.body["status"]]).toEqual([200, "done"]);
    expect((await read(made.id))?.paidUntil).toBe(made.paidUntil.toISOString());
    await tickAt(addDays(made.paidUntil, -5));
    expect((await invoicesOf(made.id)).map(({ status }) => status)).toEqual(["refunded", "unpaid"]);
  });

  it("that is paid stays when the money of an earlier one is given back", async () => {
    const made = await make();
    await tickAt(addDays(made.paidUntil, -7));
    const [renewal] = await invoicesOf(made.id);
    await pay(renewal?.token ?? "");
    const paidUntil = addMonths(made.paidUntil, 1).toISOString();
    expect((await read(made.id))?.paidUntil).toBe(paidUntil);
    const first = (await bindings.DB.prepare(
      "SELECT id FROM invoices WHERE resource_id = ? AND kind IN ('site', 'database')",
    )
      .bind(made.id)
      .first<{ id: string }>()) ?? { id: "" };
    const refunded = await api(await operator(), "POST", `/invoices/${first.id}/refund`, {});
    expect([refunded.status, refunded.body["status"]]).toEqual([200, "done"]);
    expect((await read(made.id))?.paidUntil).toBe(paidUntil);
    // With it goes the earlier one, which was kept for its sake.
    const path = `/invoices/${renewal?.id}/refund`;
    const { term } = (await api<RefundPreview>(await operator(), "GET", path)).body;
    expect((await api(await operator(), "POST", path, {})).status).toBe(200);
    const ends = (await read(made.id))?.paidUntil ?? "";
    expect(Date.parse(ends)).toBeLessThanOrEqual(Date.now());
    expect(Math.abs(Date.parse(term?.endsAt ?? "") - Date.parse(ends))).toBeLessThan(60_000);
  });

  it("whose money is given back while its renewal is open has that renewal due at the new end, and paid from there", async () => {
    const id = await bought(new Date("2027-01-10T10:00:00Z"));
    const time = new Date("2027-02-06T10:00:00.000Z");
    await tickAt(time);
    const [first] = await invoicesOf(id, name);
    await refundInvoice({ ...ctxAt(time), actor: operatorActor }, { id: first?.id ?? "", force: false });
    const [renewal] = await invoicesOf(id);
    expect(renewal).toMatchObject({ status: "unpaid", due_at: time.getTime() });
    if (renewal) await payAt(time, renewal);
    expect((await read(id))?.paidUntil).toBe("2027-03-06T10:00:00.000Z");
    // Given back too, nothing is left.
    await refundInvoice({ ...ctxAt(time), actor: operatorActor }, { id: renewal?.id ?? "", force: false });
    expect((await read(id))?.paidUntil).toBe(time.toISOString());
  });

  const operatorActor = {
    type: "key",
    accountId: "acc_1",
    role: "operator",
    plan: "free",
    keyId: "key_1",
  } as const;
  /** Ordered, and paid for at this time. */
  async function bought(time: Date): Promise<string> {
    const id =
      name === "site"
        ? (await createSite(key)).siteId
        : (await api<DatabaseCreated>(key, "POST", "/databases", { name: uniqueName("data"), type: "redis" }))
            .body.databaseId;
    const [first] = await invoicesOf(id, name);
    if (first) expect(await payAt(time, first)).toBe("settled");
    if (name === "database") await done("database.provision");
    return id;
  }
  async function renewedAt(id: string, time: Date): Promise<string | null | undefined> {
    await tickAt(time);
    const renewal = (await invoicesOf(id)).find(({ status }) => status === "unpaid");
    if (renewal) await payAt(time, renewal);
    return (await read(id))?.paidUntil;
  }

  it("that began on a 31st ends on each month's last day, and begins anew from the day on which it resumes", async () => {
    const id = await bought(new Date("2027-01-31T10:00:00Z"));
    expect((await read(id))?.paidUntil).toBe("2027-02-28T10:00:00.000Z");
    expect(await renewedAt(id, new Date("2027-02-25T12:00:00Z"))).toBe("2027-03-31T10:00:00.000Z");
    expect(await renewedAt(id, new Date("2027-04-02T12:00:00Z"))).toBe("2027-04-30T10:00:00.000Z");
    expect(await read(id)).toMatchObject({ billingDay: 31 });
    for (const day of ["04-25", "05-08"]) await tickAt(new Date(`2027-${day}T00:00:00Z`));
    expect((await read(id))?.status).toBe("SUSPENDED");
    expect(await renewedAt(id, new Date("2027-05-30T09:00:00Z"))).toBe("2027-06-30T09:00:00.000Z");
    expect(await renewedAt(id, new Date("2027-06-29T00:00:00Z"))).toBe("2027-07-30T09:00:00.000Z");
  });

  it("whose money is given back ends on that day of the month from then on", async () => {
    const id = await bought(new Date("2027-01-31T10:00:00Z"));
    const [first] = await invoicesOf(id, name);
    const time = new Date("2027-02-28T08:00:00Z");
    await refundInvoice({ ...ctxAt(time), actor: operatorActor }, { id: first?.id ?? "", force: false });
    expect(await read(id)).toMatchObject({ paidUntil: "2027-02-28T08:00:00.000Z", billingDay: 28 });
    expect(await renewedAt(id, new Date("2027-03-01T00:00:00Z"))).toBe("2027-03-28T08:00:00.000Z");
  });

  it("which was paid for by a version that kept no day goes on from the day on which it ends", async () => {
    const id = await bought(new Date("2027-01-31T10:00:00Z"));
    await sql(
      `UPDATE ${path} SET billing_day = NULL, paid_until = ? WHERE id = ?`,
      Date.UTC(2027, 2, 31),
      id,
    );
    expect(await read(id)).toMatchObject({ billingDay: 31 });
    expect(await renewedAt(id, new Date("2027-03-29T00:00:00Z"))).toBe("2027-04-30T00:00:00.000Z");
    expect(await renewedAt(id, new Date("2027-04-29T00:00:00Z"))).toBe("2027-05-31T00:00:00.000Z");
  });

  it("costs all of the difference for a larger pack at its very beginning, in whatever month that is", async () => {
    const begins = new Date("2027-01-31T10:00:00Z");
    const id = await bought(begins);
    const dear = await api<{ id: string }>(await operator(), "POST", "/packs", {
      kind: name,
      name: "Dear",
      amountCents: 3100,
      memoryMb: 256,
      cpuMilli: 500,
      diskGb: 10,
    });
    const upgrade = name === "site" ? changePackOfSite : changePackOfDatabase;
    const changed = await upgrade(ctxAt(begins), { id, packId: dear.body.id }, (_, row) => row as never);
    expect(changed.amountCents).toBe(3100 - (name === "site" ? 500 : 700));
  });

  it("goes on month by month for years, each end renewed once", async () => {
    const made = await make();
    const billingDay = new Date(made.paidUntil).getUTCDate();
    let until = made.paidUntil;
    for (let month = 0; month < 26; month++) {
      await tickAt(addDays(until, -7));
      const renewal = (await invoicesOf(made.id)).at(-1);
      if (renewal) expect(await payAt(addDays(until, (month % 12) - 6), renewal)).toBe("settled");
      until = addMonths(until, 1, billingDay);
      expect((await read(made.id))?.paidUntil).toBe(until.toISOString());
    }
    expect(await invoicesOf(made.id)).toHaveLength(26);
    nothingToDo();
  });
});

it("D1 adds months as the rules do, to any day and moment", async () => {
  const days = [
    "2026-01-31T11:22:33.444Z",
    "2028-01-31T00:00:00.000Z",
    "2026-08-31T23:59:59.999Z",
    "2026-12-15T05:00:00.001Z",
  ];
  const cases = days.flatMap((day) =>
    [0, 1, 2, 29, 30].map((later) => [addDays(new Date(day), later), 31 - later] as const),
  );
  const ctx = contextOf(bindings, { type: "system" }, () => undefined);
  for (const [from, billingDay] of cases)
    for (const months of [1, 3, 6, 12, 24]) {
      const [row] = await ctx.db.all<{ at: number }>(
        query`SELECT ${addMonthsTo(query`${from.getTime()}`, query`${months}`, query`${billingDay}`)} AS at`,
      );
      expect(new Date(row?.at ?? 0)).toEqual(addMonths(from, months, billingDay));
    }
});

it("a stopped database whose host was lost while it was suspended starts as an empty one once it is paid", async () => {
  const { body: created } = await api<DatabaseCreated>(key, "POST", "/databases", {
    name: uniqueName("data"),
    type: "redis",
  });
  const id = created.databaseId;
  await pay(created.invoiceToken);
  await done("database.provision", { version: "7.2" });
  await api(key, "PATCH", `/databases/${id}`, { action: "stop" });
  await done("database.stop");
  const paidUntil = await paidUntilOf("databases", id);
  for (const days of [-7, 7]) await tickAt(addDays(paidUntil, days));
  await done("database.stop");
  host.close();
  const lose = `/hosts/${host.hostId}?force=1&loseVolumes=1`;
  await vi.waitUntil(async () => (await api(await operator(), "DELETE", lose)).status === 200, 10_000);
  const [renewal] = await invoicesOf(id);
  if (renewal) await payAt(addDays(paidUntil, 20), renewal);
  const read = () => api<Database>(key, "GET", `/databases/${id}`);
  expect((await read()).body).toMatchObject({ status: "STOPPED", version: null });
  host = await readyAgent();
  const { status, body } = await api(key, "PATCH", `/databases/${id}`, { action: "start" });
  expect([status, body]).toEqual([202, { id, status: "PROVISIONING" }]);
  await done("database.provision", { version: "7.2" });
  expect((await read()).body).toMatchObject({ status: "RUNNING", error: null });
});

it("a suspended site that a host let go comes back by a deployment of its commit", async () => {
  const { siteId } = await runningSite(key, host);
  const paidUntil = await paidUntilOf("sites", siteId);
  await tickAt(addDays(paidUntil, -7));
  await tickAt(addDays(paidUntil, 7));
  await done("site.stop");
  await sql("UPDATE sites SET host_id = NULL WHERE id = ?", siteId);
  const [renewal] = await invoicesOf(siteId);
  if (renewal) await payAt(addDays(paidUntil, 9), renewal);
  const job = (await done("site.deploy", deployResult)) as Job<"site.deploy">;
  expect(job.args.source).toMatchObject({ commit: deployResult.commit });
  expect(await site(key, siteId)).toMatchObject({ status: "RUNNING", hostId: host.hostId });
});

it("a site that never ran comes back by its first deployment, and one whose image is gone by another", async () => {
  const { siteId, invoiceToken } = await createSite(key);
  await pay(invoiceToken);
  const first = await take("site.deploy");
  await fail(host, first.job, first.attempt);
  const paidUntil = await paidUntilOf("sites", siteId);
  await tickAt(addDays(paidUntil, -7));
  await tickAt(addDays(paidUntil, 7));
  await done("site.stop");
  const [renewal] = await invoicesOf(siteId);
  const time = addDays(paidUntil, 9);
  if (renewal) await payAt(time, renewal);
  await done("site.deploy", deployResult);
  expect((await site(key, siteId)).status).toBe("RUNNING");

  const until = await paidUntilOf("sites", siteId);
  await tickAt(addDays(until, -7));
  await tickAt(addDays(until, 7));
  await done("site.stop");
  const second = (await invoicesOf(siteId)).at(-1);
  if (second) await payAt(addDays(until, 8), second);
  const start = await take("site.start");
  await fail(host, start.job, start.attempt, "The image of this version is no longer on the host.");
  // Within the minute that the cron comes by.
  await reapAt(addDays(until, 8));
  await done("site.deploy", deployResult);
  expect((await site(key, siteId)).status).toBe("RUNNING");
});

it("suspension ends what waits and runs of a site: deployments, commands, schedules", async () => {
  const { siteId } = await runningSite(key, host);
  const paidUntil = await paidUntilOf("sites", siteId);
  await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
  const running = await take("site.deploy");
  await api(key, "POST", `/sites/${siteId}/commands`, { command: "true" });
  await api(key, "POST", `/sites/${siteId}/schedules`, { name: "each", cron: "* * * * *", command: "true" });
  await tickAt(addDays(paidUntil, -7));
  await tickAt(addDays(paidUntil, 7));
  expect((await host.next("cancel")).jobId).toBe(running.job.id);
  await fail(host, running.job, running.attempt, "Cancelled", true);
  await done("site.stop");
  expect((await site(key, siteId)).status).toBe("SUSPENDED");
  const { body } = await api<{ data: { status: string }[] }>(key, "GET", `/sites/${siteId}/commands`);
  expect(body.data.map(({ status }) => status)).toEqual(["CANCELLED"]);
  await tick();
  nothingToDo();
});

describe("mails", () => {
  it("go out once each, to the account, and again only when the service refused them", async () => {
    const { siteId } = await runningSite(key, host);
    const paidUntil = await paidUntilOf("sites", siteId);
    await tickAt(addDays(paidUntil, -7));
    await sql(
      "UPDATE mails SET sent_at = 0 WHERE id NOT IN (SELECT 'issued:' || id FROM invoices WHERE resource_id = ?)",
      siteId,
    );
    const sent: { key: string | null; body: Record<string, unknown> }[] = [];
    let status = 500;
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
      const request = new Request(input, init);
      sent.push({ key: request.headers.get("Idempotency-Key"), body: await request.json() });
      return new Response(null, { status });
    });
    const send = (days: number) =>
      sendDueMails({
        ...contextOf(bindings, { type: "system" }, () => undefined),
        now: () => addDays(paidUntil, days),
      });
    await Promise.all([send(-7), send(-7)]);
    expect(sent).toHaveLength(1);
    await send(-7);
    expect(sent).toHaveLength(1);
    status = 200;
    await send(-6.9);
    await send(-6.8);
    expect(sent).toHaveLength(2);
    expect(sent[0]?.key).toBe(sent[1]?.key);
    const [renewal] = await invoicesOf(siteId);
    expect(sent[1]?.body).toMatchObject({
      text: expect.stringContaining(`${siteUrl}/invoice/${renewal?.token}`),
    });
  });
});
