import { beforeEach, describe, expect, it } from "vitest";
import type { DatabaseCreated } from "../../protocol/api/databases.ts";
import { addDays } from "../../worker/domain/pricing.ts";
import { crashingDatabase } from "./crashing-database.ts";
import { tick } from "./hosts-service.ts";
import {
  account,
  api,
  bindings,
  createSite,
  deployResult,
  finish,
  pay,
  readyAgent,
  runningSite,
  uniqueName,
} from "./service.ts";
import { rows } from "./stripe-service.ts";
import { invoicesOf, payAt, tickAt, type InvoiceRow } from "./terms-service.ts";

let key: string;
let host: Awaited<ReturnType<typeof readyAgent>>;

beforeEach(async () => {
  await bindings.DB.prepare("UPDATE hosts SET status = 'REMOVED'").run();
  key = await account();
  host = await readyAgent();
  return () => host.close();
});

async function done(kind: string) {
  const { job, attempt } = await host.next("job");
  expect(job.kind).toBe(kind);
  const result =
    kind === "site.deploy" ? deployResult : kind.startsWith("database.") ? { version: "17.2" } : {};
  await finish(host, job, attempt, kind === "database.stop" ? {} : result);
}

/** The batch was committed, and whoever sent it ended there: no hint, no answer. */
async function payAndCrash(time: Date, invoice: InvoiceRow | undefined): Promise<void> {
  if (!invoice) throw new Error("There is no such invoice");
  const cutOff = crashingDatabase(bindings.DB, { roundTrip: 1, when: "after" });
  await expect(payAt(time, invoice, cutOff)).rejects.toThrow("After");
  const [paid] = await rows("SELECT status FROM invoices WHERE id = ?", invoice.id);
  expect(paid).toEqual({ status: "paid" });
  expect(host.waiting().filter(({ type }) => type === "job")).toEqual([]);
}

const newDatabase = async () =>
  (await api<DatabaseCreated>(key, "POST", "/databases", { name: uniqueName("data"), type: "postgresql" }))
    .body;

const kinds = {
  site: {
    make: async () => (await runningSite(key, host)).siteId,
    order: async () => (await createSite(key)).siteId,
    table: "sites",
    first: "site.deploy",
  },
  database: {
    make: async () => {
      const { databaseId, invoiceToken } = await newDatabase();
      await pay(invoiceToken);
      await done("database.provision");
      return databaseId;
    },
    order: async () => (await newDatabase()).databaseId,
    table: "databases",
    first: "database.provision",
  },
} as const;

describe.each(Object.entries(kinds))(
  "what is paid for a %s while nobody lives to tell its host",
  (kind, { make, order, table, first }) => {
    const status = async (id: string) =>
      (await api<{ status: string }>(key, "GET", `/${table}/${id}`)).body.status;

    it("is provisioned within the minute", async () => {
      const id = await order();
      await payAndCrash(new Date(), (await invoicesOf(id, kind))[0]);
      await tick();
      await done(first);
      expect(await status(id)).toBe("RUNNING");
    });

    it("starts again within the minute, when it was suspended", async () => {
      const id = await make();
      const [row] = await rows<{ paid_until: number }>(`SELECT paid_until FROM ${table} WHERE id = ?`, id);
      const paidUntil = new Date(row?.paid_until ?? 0);
      await tickAt(addDays(paidUntil, -7));
      await tickAt(addDays(paidUntil, 7));
      await done(`${kind}.stop`);
      await payAndCrash(addDays(paidUntil, 8), (await invoicesOf(id))[0]);
      await tick();
      await done(`${kind}.start`);
      expect(await status(id)).toBe("RUNNING");
    });

    it("gets the limits of a dearer pack within the minute", async () => {
      const id = await make();
      const [dearer] = await rows<{ id: string }>(
        "SELECT id FROM packs WHERE kind = ? AND active ORDER BY price_cents DESC LIMIT 1",
        kind,
      );
      expect((await api(key, "PATCH", `/${table}/${id}`, { packId: dearer?.id })).status).toBe(200);
      await payAndCrash(new Date(), (await invoicesOf(id, "change"))[0]);
      await tick();
      await done(`${kind}.restart`);
      expect(await rows(`SELECT pack_id, pack_changed_at FROM ${table} WHERE id = ?`, id)).toEqual([
        { pack_id: dearer?.id, pack_changed_at: null },
      ]);
    });
  },
);
