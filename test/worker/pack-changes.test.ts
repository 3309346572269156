import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Job, JobKind } from "../../protocol/agent/jobs.ts";
import type { OwnAccount } from "../../protocol/api/accounts.ts";
import type { DatabaseCreated } from "../../protocol/api/databases.ts";
import type { PackChanged, PackForOperator } from "../../protocol/api/packs.ts";
import { addDays, addMonths } from "../../worker/domain/pricing.ts";
import { evictLeft } from "../../worker/jobs/hosts/evict-left.ts";
import { drain, hostRecord } from "./hosts-service.ts";
import {
  account,
  api,
  bindings,
  call,
  deployResult,
  fail,
  finish,
  jobOf,
  operator,
  pay,
  readyAgent,
  runningSite,
  uniqueName,
} from "./service.ts";
import { rows } from "./stripe-service.ts";
import { ctxAt, invoicesOf, payAt, tickAt } from "./terms-service.ts";

let key: string;
let host: Awaited<ReturnType<typeof readyAgent>>;

beforeEach(async () => {
  await bindings.DB.prepare("UPDATE hosts SET status = 'REMOVED'").run();
  await bindings.DB.prepare("DELETE FROM sites").run();
  await bindings.DB.prepare("DELETE FROM databases").run();
  key = await account();
  // Room for 2000 MB.
  host = await readyAgent(10, undefined, { cpuCount: 2, memoryMb: 2512 });
  return () => host.close();
});

const pack = async (kind: "site" | "database", amountCents: number, memoryMb: number, diskGb = 10) =>
  (
    await api<PackForOperator>(await operator(), "POST", "/packs", {
      kind,
      name: `Pack of ${memoryMb} MB`,
      amountCents,
      memoryMb,
      cpuMilli: 500,
      diskGb,
    })
  ).body.id;

type Change = PackChanged & { reason?: string; issues?: unknown };
const change = (path: string, body: object) => api<Change>(key, "PATCH", path, body);
const limitsOf = (job: Job) => {
  const args = job.args as { run?: { limits: object }; database?: { limits: object } };
  return (args.run ?? args.database)?.limits;
};
const take = (kind: JobKind, on = host) => jobOf(on, kind);
const nothingToDo = () => expect(host.waiting().filter(({ type }) => type === "job")).toEqual([]);

type Row = { pack_id: string; next_pack_id: string | null; paid_until: number; status: string };
const kinds = [
  [
    "site",
    async (packId: string) => {
      const { siteId } = await runningSite(key, host, { packId });
      return siteId;
    },
  ],
  [
    "database",
    async (packId: string) => {
      const { body } = await api<DatabaseCreated>(key, "POST", "/databases", {
        name: uniqueName("data"),
        type: "postgresql",
        packId,
      });
      await pay(body.invoiceToken);
      const { job, attempt } = await take("database.provision");
      await finish(host, job, attempt, { version: "17.2" });
      return body.databaseId;
    },
  ],
] as const;

describe.each(kinds)("another pack for a %s", (kind, make) => {
  const result = kind === "database" ? { version: "17.2" } : {};
  const read = async (id: string) => {
    const [row] = await rows<Row>(`SELECT * FROM ${kind}s WHERE id = ?`, id);
    if (!row) throw new Error(`There is no ${id}`);
    return row;
  };
  const path = (id: string) => `/${kind}s/${id}`;

  it("that costs more is invoiced for the rest of the term, and is there with its limits once that is paid", async () => {
    const [small, large] = [await pack(kind, 1000, 256), await pack(kind, 5000, 512)];
    const id = await make(small);
    const { body } = await change(path(id), { packId: large });
    expect(body).toMatchObject({ id, packId: small, nextPackId: large, takesEffect: "on_payment" });
    // Bought a moment ago: all but a moment of the term is left.
    expect(body.amountCents).toBeGreaterThan(3990);
    expect(body.amountCents).toBeLessThanOrEqual(4000);
    expect(await read(id)).toMatchObject({ pack_id: small });
    nothingToDo();
    await pay(body.invoiceToken ?? "");
    expect(await read(id)).toMatchObject({ pack_id: large, next_pack_id: null });
    const restart = await take(`${kind}.restart`);
    expect(limitsOf(restart.job)).toMatchObject({ memoryMb: 512 });
    // It failed: the limits are owed, so it is asked again.
    await fail(host, restart.job, restart.attempt);
    await bindings.DB.prepare("UPDATE databases SET status = 'RUNNING' WHERE id = ?").bind(id).run();
    await tickAt(new Date());
    nothingToDo();
    await tickAt(new Date(Date.now() + 11 * 60_000));
    const again = await take(`${kind}.restart`);
    await finish(host, again.job, again.attempt, result);
    await tickAt(new Date(Date.now() + 60 * 60_000));
    nothingToDo();
    expect((await invoicesOf(id, "change")).map(({ status }) => status)).toEqual(["paid"]);
  });

  it("costs what processors charge at least, however little of the term is left: steps are not free one by one", async () => {
    const [small, large] = [await pack(kind, 1000, 256), await pack(kind, 1040, 256)];
    const id = await make(small);
    const { body } = await change(path(id), { packId: large });
    expect(body).toMatchObject({ packId: small, takesEffect: "on_payment", amountCents: 50 });
    await pay(body.invoiceToken ?? "");
    expect(await read(id)).toMatchObject({ pack_id: large });
    const restart = await take(`${kind}.restart`);
    await finish(host, restart.job, restart.attempt, result);
  });

  const freeMb = async () =>
    (
      await api<{ data: { id: string; freeMemoryMb: number }[] }>(await operator(), "GET", "/hosts")
    ).body.data.find((one) => one.id === host.hostId)?.freeMemoryMb;
  /** As a customer who is led to where the invoice is paid, and has not paid yet. */
  const beginToPay = async (token: string | null) => {
    const headers = { Accept: "text/html" };
    const response = await call(`/invoice/${token}/pay`, { method: "POST", headers, redirect: "manual" });
    return { status: response.status, text: await response.text() };
  };

  it("has no memory kept for it by an invoice that nobody pays, but while somebody does, for an hour at most", async () => {
    const [small, large] = [await pack(kind, 1000, 256), await pack(kind, 5000, 1500)];
    const [one, two] = [await make(small), await make(small)];
    const before = await freeMb();
    const changes = [await change(path(one), { packId: large }), await change(path(two), { packId: large })];
    expect(changes.map(({ status }) => status)).toEqual([200, 200]);
    expect(await freeMb()).toBe(before);
    const [first, second] = changes.map(({ body }) => body.invoiceToken);
    expect((await beginToPay(first ?? null)).status).toBe(303);
    expect(await freeMb()).toBe((before ?? 0) - (1500 - 256));
    const refused = await beginToPay(second ?? null);
    expect([refused.status, refused.text]).toEqual([409, expect.stringContaining("room for 1500 MB")]);
    expect((await pay(second ?? "")).status).toBe(409);
    await bindings.DB.prepare("UPDATE test_sessions SET expires_at = 1 WHERE status = 'open'").run();
    await tickAt(new Date(Date.now() + 2 * 60 * 60_000));
    expect(await freeMb()).toBe(before);
    expect((await pay(second ?? "")).status).toBe(200);
    expect(await read(two)).toMatchObject({ pack_id: large, next_pack_id: null });
    await tickAt(addDays(new Date(), 4));
    expect((await invoicesOf(one, "change")).map(({ status }) => status)).toEqual(["void"]);
    expect(await read(one)).toMatchObject({ pack_id: small, next_pack_id: null });
  });

  it("has memory kept for it, while it is not paid, of four GiB an account at most", async () => {
    host.close();
    host = await readyAgent(10, undefined, { cpuCount: 2, memoryMb: 100_000 });
    const [small, large] = [await pack(kind, 1000, 256), await pack(kind, 5000, 3000)];
    const [one, two] = [await make(small), await make(small)];
    const [first, second] = [
      await change(path(one), { packId: large }),
      await change(path(two), { packId: large }),
    ].map(({ body }) => body.invoiceToken ?? "");
    expect((await beginToPay(first ?? "")).status).toBe(303);
    const refused = await beginToPay(second ?? "");
    expect([refused.status, refused.text]).toEqual([409, expect.stringContaining("another pack of yours")]);
    await pay(first ?? "");
    expect((await beginToPay(second ?? "")).status).toBe(303);
  });

  it("that is larger starts again what failed, as for want of memory, unless its owner stopped it", async () => {
    const [small, large] = [await pack(kind, 1000, 256), await pack(kind, 5000, 512)];
    for (const wanted of ["STOPPED", "RUNNING"]) {
      const id = await make(small);
      await rows(`UPDATE ${kind}s SET status = 'FAILED', wanted = ? WHERE id = ?`, wanted, id);
      await pay((await change(path(id), { packId: large })).body.invoiceToken ?? "");
      if (wanted === "STOPPED") nothingToDo();
      else {
        const { job, attempt } = await take(`${kind}.start`);
        expect(limitsOf(job)).toMatchObject({ memoryMb: 512 });
        await finish(host, job, attempt, result);
        expect(await read(id)).toMatchObject({ status: "RUNNING", pack_id: large });
      }
      await tickAt(new Date());
      nothingToDo();
    }
  });

  it("that is smaller starts nothing", async () => {
    const [large, small] = [await pack(kind, 5000, 512), await pack(kind, 1000, 256)];
    const id = await make(large);
    await rows(
      `UPDATE ${kind}s SET status = 'FAILED', next_pack_id = ?, next_pack_at = ? WHERE id = ?`,
      small,
      Date.now(),
      id,
    );
    await tickAt(new Date());
    expect(await read(id)).toMatchObject({ status: "FAILED", pack_id: small });
    nothingToDo();
  });

  it("that costs less comes with the next term, which costs what it costs", async () => {
    const [large, small] = [await pack(kind, 5000, 512), await pack(kind, 1000, 256)];
    const id = await make(large);
    const until = new Date((await read(id)).paid_until);
    const { body } = await change(path(id), { packId: small, billingTerm: 3 });
    expect(body).toMatchObject({
      packId: large,
      nextPackId: small,
      takesEffect: "at_renewal",
      invoiceToken: null,
    });
    await tickAt(addDays(until, -7));
    const [renewal] = await invoicesOf(id);
    expect(renewal).toMatchObject({ amount_cents: 3000 });
    if (renewal) await payAt(addDays(until, -5), renewal);
    // What was paid for stays to its end.
    await tickAt(addDays(until, -1));
    expect(await read(id)).toMatchObject({ pack_id: large, paid_until: addMonths(until, 3).getTime() });
    expect((await change(path(id), { packId: large })).status).toBe(409);
    nothingToDo();
    await tickAt(until);
    expect(await read(id)).toMatchObject({ pack_id: small, next_pack_id: null });
    const { job, attempt } = await take(`${kind}.restart`);
    expect(limitsOf(job)).toMatchObject({ memoryMb: 256 });
    await finish(host, job, attempt, result);
  });

  it("may be taken back, and one while a renewal is open replaces the renewal", async () => {
    const [small, large] = [await pack(kind, 1000, 256), await pack(kind, 5000, 512)];
    const id = await make(small);
    await change(path(id), { packId: large });
    expect((await change(path(id), { packId: small })).body).toMatchObject({
      takesEffect: "never",
      nextPackId: null,
    });
    expect((await invoicesOf(id, "change")).map(({ status }) => status)).toEqual(["void"]);
    await bindings.DB.prepare(`UPDATE ${kind}s SET paid_until = ? WHERE id = ?`)
      .bind(addDays(new Date(), 5).getTime(), id)
      .run();
    await tickAt(new Date());
    const { body } = await change(path(id), { packId: large });
    expect(body).toMatchObject({ takesEffect: "at_renewal", amountCents: 5000 });
    expect((await invoicesOf(id)).map(({ status, amount_cents }) => [status, amount_cents])).toEqual([
      ["void", 1000],
      ["unpaid", 5000],
    ]);
  });

  it("leaves the term that was chosen for the renewal: only the current pack, sent alone, takes it back", async () => {
    const [small, large] = [await pack(kind, 1000, 256), await pack(kind, 5000, 512)];
    const id = await make(small);
    const shown = async () => {
      const { body } = await api<{ nextBillingTerm: number }>(key, "GET", path(id));
      const { terms } = (await api<OwnAccount>(key, "GET", "/account")).body;
      return [body.nextBillingTerm, terms.find((term) => term.id === id)?.nextBillingTerm];
    };
    expect(await shown()).toEqual([null, null]);
    const chosen = { takesEffect: "at_renewal", nextPackId: null, nextBillingTerm: 12 };
    expect((await change(path(id), { packId: small, billingTerm: 12 })).body).toMatchObject(chosen);
    const { body } = await change(path(id), { packId: large });
    expect(body).toMatchObject({ takesEffect: "on_payment", nextBillingTerm: 12 });
    expect((await api(key, "POST", `/invoices/${body.invoiceId}/cancel`)).status).toBe(200);
    expect(await read(id)).toMatchObject({ pack_id: small, next_pack_id: null });
    expect(await shown()).toEqual([12, 12]);
    expect((await change(path(id), { packId: small })).body).toMatchObject({
      takesEffect: "never",
      nextBillingTerm: null,
    });
    expect(await shown()).toEqual([null, null]);
  });

  it("costs nothing where the rest of the term is worth less than a cent", async () => {
    const [small, large] = [await pack(kind, 1000, 256), await pack(kind, 5000, 512)];
    const id = await make(small);
    await bindings.DB.prepare(`UPDATE ${kind}s SET paid_until = ? WHERE id = ?`)
      .bind(Date.now() + 300_000, id)
      .run();
    const { body } = await change(path(id), { packId: large });
    expect(body).toMatchObject({ packId: large, takesEffect: "now", invoiceToken: null });
    const { job, attempt } = await take(`${kind}.restart`);
    expect(limitsOf(job)).toMatchObject({ memoryMb: 512 });
    await finish(host, job, attempt, result);
  });

  it("that is unpaid when the term is renewed is void, and the old one is renewed", async () => {
    const [small, large] = [await pack(kind, 1000, 256), await pack(kind, 5000, 512)];
    const id = await make(small);
    await change(path(id), { packId: large });
    const until = new Date((await read(id)).paid_until);
    // The cron stood still for all the while.
    await bindings.DB.prepare("UPDATE invoices SET due_at = 9e15 WHERE resource_id = ? AND kind = 'change'")
      .bind(id)
      .run();
    await tickAt(addDays(until, -7));
    expect((await invoicesOf(id, "change")).map(({ status }) => status)).toEqual(["void"]);
    expect((await invoicesOf(id)).map(({ amount_cents }) => amount_cents)).toEqual([1000]);
    expect(await read(id)).toMatchObject({ next_pack_id: null });
  });

  it("that is being paid when the term is renewed comes first, and is what is renewed", async () => {
    const [small, large] = [await pack(kind, 1000, 256), await pack(kind, 5000, 512)];
    const id = await make(small);
    const { body } = await change(path(id), { packId: large });
    expect((await beginToPay(body.invoiceToken)).status).toBe(303);
    const until = new Date((await read(id)).paid_until);
    // The customer takes weeks.
    for (const table of ["test_sessions", "checkouts"])
      await rows(`UPDATE ${table} SET expires_at = 9e15 WHERE status = 'open'`);
    await tickAt(addDays(until, -7));
    expect((await invoicesOf(id, "change")).map(({ status }) => status)).toEqual(["unpaid"]);
    expect(await invoicesOf(id)).toEqual([]);
    await pay(body.invoiceToken ?? "");
    expect(await read(id)).toMatchObject({ pack_id: large });
    await tickAt(addDays(until, -7));
    expect((await invoicesOf(id)).map(({ amount_cents }) => amount_cents)).toEqual([5000]);
  });

  it("is refused before it is paid for, and of another kind", async () => {
    const other = await pack(kind === "site" ? "database" : "site", 1000, 256);
    const small = await pack(kind, 1000, 256);
    const id = await make(small);
    expect((await change(path(id), { packId: other })).status).toBe(400);
    expect((await change(path(id), { packId: small, action: "stop" })).status).toBe(400);
    await bindings.DB.prepare(`UPDATE ${kind}s SET status = 'PENDING' WHERE id = ?`).bind(id).run();
    expect((await change(path(id), { packId: small })).status).toBe(402);
  });
});

it("a site moves to a host that has room for the larger pack, where that was kept for it", async () => {
  const [small, large] = [await pack("site", 1000, 256), await pack("site", 5000, 3000)];
  const { siteId } = await runningSite(key, host, { packId: small });
  expect((await change(`/sites/${siteId}`, { packId: large })).body.reason).toContain(
    "No host has room for 3000 MB",
  );
  const big = await readyAgent(10, undefined, { cpuCount: 2, memoryMb: 4000 });
  const { body } = await change(`/sites/${siteId}`, { packId: large });
  expect(body.takesEffect).toBe("on_payment");
  await pay(body.invoiceToken ?? "");
  const { job, attempt } = await take("site.deploy", big);
  expect(limitsOf(job)).toMatchObject({ memoryMb: 3000 });
  await finish(big, job, attempt, deployResult);
  expect((await api(key, "GET", `/sites/${siteId}`)).body).toMatchObject({
    status: "RUNNING",
    hostId: big.hostId,
    packId: large,
  });
  big.close();
});

describe("a larger pack that the site's host has no room for", () => {
  const minutes = (count: number) => new Date(Date.now() + count * 60_000);
  const freeMb = async (id: string) => (await hostRecord(id)).freeMemoryMb;
  /** As a customer who is led to where the invoice is paid. */
  const beginToPay = (token: string | null) =>
    call(`/invoice/${token}/pay`, { method: "POST", headers: { Accept: "text/html" }, redirect: "manual" });
  /** A small site here, another host that has room for its large pack, and the invoice for that. */
  async function small() {
    const [of256, of3000] = [await pack("site", 1000, 256), await pack("site", 5000, 3000)];
    const { siteId } = await runningSite(key, host, { packId: of256 });
    const big = await readyAgent(10, undefined, { cpuCount: 2, memoryMb: 4000 });
    const { body } = await change(`/sites/${siteId}`, { packId: of3000 });
    return { siteId, big, invoiceToken: body.invoiceToken ?? "" };
  }
  async function arrives(siteId: string, big: typeof host): Promise<void> {
    const { job, attempt } = await take("site.deploy", big);
    expect(limitsOf(job)).toMatchObject({ memoryMb: 3000 });
    await finish(big, job, attempt, deployResult);
    expect((await api(key, "GET", `/sites/${siteId}`)).body).toMatchObject({
      status: "RUNNING",
      hostId: big.hostId,
    });
    await evictLeft(ctxAt(minutes(60)));
    const left = await take("site.evict");
    await finish(host, left.job, left.attempt);
    expect([await freeMb(host.hostId), await freeMb(big.hostId)]).toEqual([2000, 488]);
    big.close();
  }

  it("is not run there when the move fails, nor by a deployment: the site keeps its limits and moves later and later", async () => {
    const { siteId, big, invoiceToken } = await small();
    const noJob = () => expect(big.waiting().filter(({ type }) => type === "job")).toEqual([]);
    await pay(invoiceToken);
    for (const waitMinutes of [10, 20]) {
      const move = await take("site.deploy", big);
      await fail(big, move.job, move.attempt);
      await evictLeft(ctxAt(minutes(0)));
      const copy = await take("site.evict", big);
      await finish(big, copy.job, copy.attempt);
      await tickAt(minutes(waitMinutes - 1));
      nothingToDo();
      noJob();
      if (waitMinutes === 10) await tickAt(minutes(11));
    }
    await change(`/sites/${siteId}`, { action: "deploy" });
    const own = await take("site.deploy");
    expect(limitsOf(own.job)).toMatchObject({ memoryMb: 256 });
    await finish(host, own.job, own.attempt, deployResult);
    await tickAt(minutes(0));
    nothingToDo();
    await arrives(siteId, big);
  });

  it("is not run there when a deployment was under way as it was paid: it moves afterwards", async () => {
    const { siteId, big, invoiceToken } = await small();
    expect((await beginToPay(invoiceToken)).status).toBe(303);
    await change(`/sites/${siteId}`, { action: "deploy" });
    const under = await take("site.deploy");
    await pay(invoiceToken);
    await tickAt(minutes(0));
    await finish(host, under.job, under.attempt, deployResult);
    await tickAt(minutes(0));
    nothingToDo();
    await arrives(siteId, big);
  });

  it.each([
    { memoryMb: 4000, isThere: "has" },
    { memoryMb: 1000, isThere: "has not" },
  ])(
    "is run on another host, to which it was moving already as it was paid, once that has room, which it $isThere",
    async ({ memoryMb }) => {
      const [of256, of1000] = [await pack("site", 1000, 256), await pack("site", 5000, 1000)];
      const { siteId } = await runningSite(key, host, { packId: of256 });
      const next = await readyAgent(10, undefined, { cpuCount: 2, memoryMb });
      await drain(host);
      const move = await take("site.deploy", next);
      await pay((await change(`/sites/${siteId}`, { packId: of1000 })).body.invoiceToken ?? "");
      await finish(next, move.job, move.attempt, deployResult);
      await tickAt(minutes(0));
      if (memoryMb < 1512) {
        expect(next.waiting().filter(({ type }) => type === "job")).toEqual([]);
        await rows(
          "UPDATE hosts SET memory_mb = 4000, memory_limit_mb = 4000 WHERE id = ? RETURNING id",
          next.hostId,
        );
        await tickAt(minutes(0));
      }
      expect(limitsOf((await take("site.restart", next)).job)).toMatchObject({ memoryMb: 1000 });
      next.close();
    },
  );

  it("moves a stopped site too, which stays stopped", async () => {
    const { siteId, big, invoiceToken } = await small();
    expect((await beginToPay(invoiceToken)).status).toBe(303);
    await change(`/sites/${siteId}`, { action: "stop" });
    const stop = await take("site.stop");
    await pay(invoiceToken);
    await finish(host, stop.job, stop.attempt);
    await tickAt(minutes(0));
    const { job, attempt } = await take("site.deploy", big);
    expect(job.args).toMatchObject({ parked: true });
    await finish(big, job, attempt, { ...deployResult, parked: true });
    const again = await take("site.stop", big);
    await finish(big, again.job, again.attempt);
    expect((await api(key, "GET", `/sites/${siteId}`)).body).toMatchObject({
      status: "STOPPED",
      hostId: big.hostId,
    });
    big.close();
  });

  it("is run there once that host has room, and a smaller one that was chosen meanwhile at once", async () => {
    /** Its move failed, and the host with room is gone. */
    const stuck = async () => {
      const { siteId, big, invoiceToken } = await small();
      await pay(invoiceToken);
      const move = await take("site.deploy", big);
      await fail(big, move.job, move.attempt);
      big.close();
      return siteId;
    };
    const restarts = async (memoryMb: number, afterMinutes: number) => {
      await tickAt(minutes(afterMinutes));
      const { job, attempt } = await take("site.restart");
      expect(limitsOf(job)).toMatchObject({ memoryMb });
      await finish(host, job, attempt);
    };
    const siteId = await stuck();
    await rows(
      "UPDATE hosts SET memory_mb = 6000, memory_limit_mb = 6000 WHERE id = ? RETURNING id",
      host.hostId,
    );
    await restarts(3000, 0);
    await tickAt(minutes(1));
    nothingToDo();
    const other = await stuck();
    expect(siteId).not.toBe(other);
    const of128 = await pack("site", 100, 128);
    await rows("UPDATE sites SET next_pack_id = ?, next_pack_at = 1 WHERE id = ? RETURNING id", of128, other);
    await restarts(128, 2);
  });
});

it("a pack too small for a site's replicas or for what its volumes hold is refused", async () => {
  const [large, small] = [await pack("site", 5000, 512, 20), await pack("site", 1000, 128, 1)];
  const { siteId } = await runningSite(key, host, { packId: large, replicas: 4 });
  const refused = await change(`/sites/${siteId}`, { packId: small });
  expect([refused.status, JSON.stringify(refused.body.issues)]).toEqual([
    400,
    expect.stringContaining("128 MB"),
  ]);
  const { siteId: full } = await runningSite(key, host, {
    packId: large,
    volumes: [{ name: "data", mountPath: "/data" }],
  });
  const asking = change(`/sites/${full}`, { packId: small });
  const { requestId } = await host.next("ask");
  const volumes = [{ name: "data", sizeMb: 1500 }];
  host.send({ type: "answer", requestId, answer: { kind: "volumes", volumes }, last: true });
  expect((await asking).body.reason).toContain("use 1500 MB");
});

it("more replicas than the pack that comes with the next term holds are refused, until that is taken back", async () => {
  const [large, small] = [await pack("site", 5000, 512), await pack("site", 1000, 256)];
  const { siteId } = await runningSite(key, host, { packId: large });
  await change(`/sites/${siteId}`, { packId: small });
  const scale = (replicas: number) => change(`/sites/${siteId}`, { settings: { replicas } });
  const refused = await scale(8);
  expect([refused.status, refused.body.issues]).toEqual([
    400,
    [
      {
        path: "settings.replicas",
        message: expect.stringMatching(/share the 256 MB of the pack that the site changes to.*at most 4/),
      },
    ],
  ]);
  expect((await scale(4)).status).toBe(200);
  await change(`/sites/${siteId}`, { packId: large });
  expect((await scale(8)).status).toBe(200);
});

it("a pack too small for what a database is known to hold is refused with what gives room back, and taken once it fits", async () => {
  const [large, small] = [await pack("database", 5000, 512, 20), await pack("database", 1000, 128, 1)];
  const { body } = await api<DatabaseCreated>(key, "POST", "/databases", {
    name: uniqueName("data"),
    type: "postgresql",
    packId: large,
  });
  await pay(body.invoiceToken);
  const { job, attempt } = await take("database.provision");
  await finish(host, job, attempt, { version: "17.2" });
  const path = `/databases/${body.databaseId}`;
  await diskUse(body.databaseId, 1025);
  const refused = await change(path, { packId: small });
  expect([refused.status, refused.body.reason]).toEqual([
    409,
    expect.stringMatching(/uses 1\.0 GB, and Pack of 128 MB has 1 GB: .*VACUUM FULL/),
  ]);
  // A dearer pack, or one as large, is nobody's concern.
  expect((await change(path, { packId: await pack("database", 6000, 128, 20) })).status).toBe(200);
  await diskUse(body.databaseId, 1024);
  expect((await change(path, { packId: small })).body).toMatchObject({ takesEffect: "at_renewal" });
});

it("a database whose host was never asked what it holds may have a smaller pack", async () => {
  const [large, small] = [await pack("database", 5000, 512, 20), await pack("database", 1000, 128, 1)];
  const { body } = await api<DatabaseCreated>(key, "POST", "/databases", {
    name: uniqueName("data"),
    type: "mysql",
    packId: large,
  });
  await pay(body.invoiceToken);
  const { job, attempt } = await take("database.provision");
  await finish(host, job, attempt, { version: "11.4" });
  expect((await change(`/databases/${body.databaseId}`, { packId: small })).status).toBe(200);
});

it("a pack in which Redis could not load its data is refused with what it holds, and taken once it fits", async () => {
  const [large, small] = [await pack("database", 5000, 512), await pack("database", 1000, 128)];
  const { body } = await api<DatabaseCreated>(key, "POST", "/databases", {
    name: uniqueName("data"),
    type: "redis",
    packId: large,
  });
  await pay(body.invoiceToken);
  const { job, attempt } = await take("database.provision");
  await finish(host, job, attempt, { version: "7.2" });
  const holding = async (sizeMb: number) => {
    const changing = change(`/databases/${body.databaseId}`, { packId: small });
    const { requestId, question } = await host.next("ask");
    expect(question.kind).toBe("insight");
    const insight = {
      sizeMb,
      connections: { used: 1, max: 10 },
      cacheHitRatio: null,
      uptimeSeconds: 1,
      activeQueries: [],
      slowQueries: [],
    };
    host.send({ type: "answer", requestId, answer: { kind: "insight", insight }, last: true });
    return changing;
  };
  const refused = await holding(96.5);
  expect([refused.status, refused.body.reason]).toEqual([
    409,
    "The database holds 97 MB in memory, and Pack of 128 MB has room for 96 MB. Delete keys first, or choose a larger pack.",
  ]);
  expect((await holding(96)).body).toMatchObject({ takesEffect: "at_renewal" });
});

/** The host has measured it; what the worker does with that shows a moment later. */
async function diskUse(databaseId: string, usedMb: number): Promise<void> {
  host.send({ type: "diskUse", databases: [{ databaseId, usedMb }] });
  await vi.waitUntil(async () => {
    const [row] = await rows<{ disk_mb: number }>("SELECT disk_mb FROM databases WHERE id = ?", databaseId);
    return row?.disk_mb === Math.ceil(usedMb);
  }, 10_000);
}
