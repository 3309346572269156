import { eq } from "drizzle-orm";
import { describe, expect, it, vi } from "vitest";
import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";
import type { Database, DatabaseCreated, DatabaseCredentials } from "../../protocol/api/databases.ts";
import type { PublicAccess } from "../../protocol/api/public-access.ts";
import { contextOf } from "../../worker/compose.ts";
import { databases, jobs } from "../../worker/db/schema.ts";
import { publicPorts } from "../../worker/domain/database-engines.ts";
import { exposeDatabase } from "../../worker/services/databases/expose.ts";
import { reconcileDatabases } from "../../worker/jobs/databases/reconcile.ts";
import {
  account,
  api,
  bindings,
  fail,
  finish,
  operator,
  pay,
  readyAgent,
  uniqueName,
  type Agent,
  runningDatabase,
} from "./service.ts";

const ctx = () => contextOf(bindings, { type: "system" }, () => undefined);
const inMs = (ms: number) => ({ ...ctx(), now: () => new Date(Date.now() + ms) });
const minute = 60_000;
const authority = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
const allow = ["203.0.113.0/24"];
type Refused = Database & { reason?: string; issues?: { path: string; message: string }[] };

const read = async (key: string, id: string) => (await api<Database>(key, "GET", `/databases/${id}`)).body;
const change = (key: string, id: string, publicAccess: Partial<PublicAccess>) =>
  api<Refused>(key, "PATCH", `/databases/${id}`, { publicAccess });
const credentials = async (key: string, id: string) =>
  (await api<DatabaseCredentials>(key, "GET", `/databases/${id}/credentials`)).body.publicAccess;

const running = async (key: string, on: Agent, overrides = {}): Promise<string> =>
  (await runningDatabase(key, on, overrides)).databaseId;

/** The next job, which must be to open or close a database. */
async function take(on: Agent) {
  const { job, attempt } = await on.next("job");
  expect(job.kind).toBe("database.expose");
  const args = job.args as { database: DatabaseSpec; generation: number };
  return { job, attempt, ...args };
}
type Taken = Awaited<ReturnType<typeof take>>;
const inDays = (days: number) => new Date(Date.now() + days * 24 * 60 * minute).toISOString();
const confirm = (on: Agent, { job, attempt, generation }: Taken, endsAt: string | null = inDays(397)) =>
  finish(on, job, attempt, { generation, address: "192.0.2.7", certificateAuthority: authority, endsAt });

describe("public access", () => {
  it("is off, and asked for it reaches the host and then the record and the owner's credentials", async () => {
    const key = await account();
    const on = await readyAgent();
    const id = await running(key, on);
    const off = { enabled: false, allow: [], applied: true, host: null, port: null, error: null };
    expect((await read(key, id)).publicAccess).toEqual(off);
    expect(await credentials(key, id)).toBeNull();

    const { status, body } = await change(key, id, { enabled: true, allow });
    expect([status, body.publicAccess]).toEqual([
      200,
      { ...off, enabled: true, allow, applied: false, port: expect.any(Number) },
    ]);
    const { port } = body.publicAccess;
    expect(port).toBeGreaterThanOrEqual(publicPorts.first);
    expect(port).toBeLessThan(publicPorts.first + publicPorts.count);
    const taken = await take(on);
    expect(taken.database.publicAccess).toEqual({ port, allow });
    expect(await credentials(key, id)).toBeNull();
    await confirm(on, taken);
    expect((await read(key, id)).publicAccess).toMatchObject({ applied: true, host: "192.0.2.7", port });
    const shown = await credentials(key, id);
    expect(shown?.certificateAuthority).toBe(authority);
    expect(shown?.connectionString).toMatch(
      new RegExp(
        `^postgresql://data_.+@192\\.0\\.2\\.7:${port}/data_.+\\?sslmode=verify-full&sslrootcert=ca\\.pem$`,
      ),
    );

    // Off and on again: who may and by which port stays.
    expect((await change(key, id, { enabled: false })).body.publicAccess).toMatchObject({
      enabled: false,
      port,
    });
    const closing = await take(on);
    expect(closing.database.publicAccess).toBeUndefined();
    expect(await credentials(key, id)).toBeNull();
    await confirm(on, closing);
    expect((await change(key, id, { enabled: true })).body.publicAccess).toMatchObject({ allow, port });
    expect((await take(on)).database.publicAccess).toEqual({ port, allow });
  });

  it.each([
    ["mysql", /^mysql:.+@192\.0\.2\.7:\d+\/data_.+\?ssl-mode=VERIFY_CA&ssl-ca=ca\.pem$/],
    ["redis", /^rediss:.+@192\.0\.2\.7:\d+\/0$/],
  ])("of a %s database has an address that its own clients understand", async (type, address) => {
    const key = await account();
    const on = await readyAgent();
    const id = await running(key, on, { type });
    await change(key, id, { enabled: true, allow });
    await confirm(on, await take(on));
    expect((await credentials(key, id))?.connectionString).toMatch(address);
  });

  it("is refused to a list that is empty, wrong or too long, and is everybody's where that is said", async () => {
    const key = await account();
    const on = await readyAgent();
    const id = await running(key, on);
    for (const [wrong, message] of [
      [undefined, "name at least one"],
      [[], "name at least one"],
      [["2001:db8::/32"], "over IPv4"],
      [["203.0.113.5/24"], "canonical"],
      [["203.0.113.0/33"], "canonical"],
      [["203.0.113.0/024"], "canonical"],
      [["203.0.113"], "canonical"],
      [["0203.0.113.1"], "canonical"],
      [["203.0.113.1 "], "canonical"],
      [["example.com"], "canonical"],
      [["2001:DB8::1", ...allow], "canonical"],
      [["2001:db8:0:0::1", ...allow], "canonical"],
      [["2001:db8::1/64", ...allow], "canonical"],
      [["2001:db8::/129", ...allow], "canonical"],
      [["::1%eth0", ...allow], "canonical"],
      [["1.1.1.1 -j ACCEPT"], "canonical"],
      [[...allow, ...allow], "once"],
      [Array.from({ length: 33 }, (_, index) => `203.0.113.${index}`), "32"],
    ] as const) {
      const { status, body } = await change(key, id, { enabled: true, ...(wrong && { allow: [...wrong] }) });
      expect([wrong, status]).toEqual([wrong, 400]);
      expect(JSON.stringify(body.issues)).toContain(message);
    }
    expect((await read(key, id)).publicAccess).toMatchObject({ enabled: false, port: null });
    const everybody = [
      "0.0.0.0/0",
      "::/0",
      "2001:db8::/32",
      "2001:db8::1",
      "198.51.100.7",
      "198.51.100.8/32",
    ];
    expect((await change(key, id, { enabled: true, allow: everybody })).status).toBe(200);
    expect((await take(on)).database.publicAccess?.allow).toEqual(everybody);
  });

  it("is the owner's to change, once it is paid and provisioned", async () => {
    const key = await account();
    const input = { name: uniqueName("data"), type: "postgresql" };
    const { databaseId, invoiceToken } = (await api<DatabaseCreated>(key, "POST", "/databases", input)).body;
    expect((await change(key, databaseId, { enabled: true, allow })).status).toBe(402);
    const on = await readyAgent();
    await pay(invoiceToken);
    const { job, attempt } = await on.next("job");
    const early = await change(key, databaseId, { enabled: true, allow });
    expect([early.status, early.body.reason]).toEqual([409, expect.stringContaining("provisioned")]);
    await finish(on, job, attempt, { version: "17.2" });
    expect((await change(await account(), databaseId, { enabled: true, allow })).status).toBe(403);
    expect((await change(key, databaseId, { enabled: true, allow })).status).toBe(200);
    await api(key, "DELETE", `/databases/${databaseId}`);
    expect((await change(key, databaseId, { enabled: true, allow })).status).toBe(409);
  });

  it("gives databases of one host ports of their own, however many ask at once", async () => {
    const key = await account();
    const on = await readyAgent();
    const ids = [
      await running(key, on),
      await running(key, on),
      await running(key, on),
      await running(key, on),
    ];
    const [row] = await ctx()
      .db.select()
      .from(databases)
      .where(eq(databases.id, ids[0] as never));
    const owner = {
      type: "session",
      accountId: row!.accountId,
      role: "user",
      plan: "free",
      sessionId: ctx().newId("session"),
    } as const;
    // All begin to look at the same place.
    const answers = await Promise.all(
      ids.map((id) => {
        const own = contextOf(bindings, owner, () => undefined);
        return exposeDatabase(
          { ...own, random: (bytes) => new Uint8Array(bytes) },
          { id, publicAccess: { enabled: true, allow } },
        );
      }),
    );
    const ports = answers.map(({ publicAccess }) => publicAccess.port);
    expect(ports.map(Number).toSorted((one, other) => one - other)).toEqual(
      ids.map((_, index) => publicPorts.first + index),
    );
    // The index holds where the statement would not.
    await expect(
      ctx()
        .db.update(databases)
        .set({ publicPort: ports[0] })
        .where(eq(databases.id, ids[1] as typeof databases.$inferSelect.id)),
    ).rejects.toThrow();
  });

  it("says when its host has no port left", async () => {
    const key = await account();
    const on = await readyAgent();
    const id = await running(key, on);
    const [row] = await ctx()
      .db.select()
      .from(databases)
      .where(eq(databases.id, id as never));
    await bindings.DB.prepare(
      `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${publicPorts.count - 1})
       INSERT INTO databases (id, account_id, name, type, status, image, pack_id, billing_term, host_id, database_name,
         admin_password_sealed, password_sealed, public_port, created_at, updated_at)
       SELECT 'db_full' || i, ?1, 'full' || i, 'redis', 'RUNNING', 'redis:7.2', ?2, 1, ?3, 'full', '', '',
         ${publicPorts.first} + i, 0, 0 FROM n`,
    )
      .bind(await account(), row?.packId, row?.hostId)
      .run();
    const refused = await change(key, id, { enabled: true, allow });
    expect([refused.status, refused.body.reason]).toEqual([
      409,
      expect.stringContaining("no free public port"),
    ]);
    await bindings.DB.prepare("DELETE FROM databases WHERE id LIKE 'db_full%' AND public_port = 23456").run();
    expect((await change(key, id, { enabled: true, allow })).body.publicAccess.port).toBe(23456);
    await bindings.DB.prepare("DELETE FROM databases WHERE id LIKE 'db_full%'").run();
  });

  it("asked for again while the host works on it is done once more, and only the last is applied", async () => {
    const key = await account();
    const on = await readyAgent();
    const id = await running(key, on);
    await change(key, id, { enabled: true, allow });
    const first = await take(on);
    await change(key, id, { enabled: true, allow: ["198.51.100.7"] });
    await change(key, id, { enabled: false });
    await confirm(on, first);
    expect((await read(key, id)).publicAccess).toMatchObject({ enabled: false, applied: false });
    const second = await take(on);
    expect([second.generation, second.database.publicAccess]).toEqual([3, undefined]);
    await confirm(on, second);
    expect((await read(key, id)).publicAccess).toMatchObject({ applied: true });
    expect(on.waiting().filter(({ type }) => type === "job")).toEqual([]);
  });

  it("that the host could not open says why, and is tried again by the cron until it is", async () => {
    const key = await account();
    const on = await readyAgent();
    const id = await running(key, on);
    await change(key, id, { enabled: true, allow });
    const first = await take(on);
    await fail(on, first.job, first.attempt, "This host does not keep its own firewall: ask its operator.");
    expect((await read(key, id)).publicAccess).toMatchObject({
      applied: false,
      error: "This host does not keep its own firewall: ask its operator.",
    });
    const waiting = async () =>
      (
        await ctx()
          .db.select()
          .from(jobs)
          .where(eq(jobs.databaseId, id as never))
      ).filter(({ status }) => status === "QUEUED" || status === "LEASED").length;
    await reconcileDatabases(ctx());
    expect(await waiting()).toBe(0);
    await reconcileDatabases(inMs(11 * minute));
    const again = await take(on);
    await reconcileDatabases(inMs(11 * minute));
    expect(await waiting()).toBe(1);
    await confirm(on, again);
    expect((await read(key, id)).publicAccess).toMatchObject({ applied: true, error: null });
  });

  it("is carried on with when its job was lost, and its certificate is followed by another in time", async () => {
    const key = await account();
    const on = await readyAgent();
    const id = await running(key, on);
    await change(key, id, { enabled: true, allow });
    await confirm(on, await take(on), inDays(100));
    await bindings.DB.prepare("UPDATE databases SET public_applied = 0 WHERE id = ?").bind(id).run();
    await reconcileDatabases(ctx());
    await confirm(on, await take(on), inDays(100));
    await reconcileDatabases(ctx());
    expect(on.waiting().filter(({ type }) => type === "job")).toEqual([]);
    await reconcileDatabases(inMs(50 * 24 * 60 * minute));
    expect((await take(on)).database.publicAccess).toMatchObject({ allow });
  });

  it("comes with each start, and goes with a host that was removed", async () => {
    const key = await account();
    const on = await readyAgent();
    const id = await running(key, on);
    await change(key, id, { enabled: true, allow });
    await confirm(on, await take(on));
    await api(key, "PATCH", `/databases/${id}`, { action: "restart" });
    const { job, attempt } = await on.next("job");
    expect([job.kind, (job.args as { database: DatabaseSpec }).database.publicAccess?.allow]).toEqual([
      "database.restart",
      allow,
    ]);
    await finish(on, job, attempt, { version: "17.2" });
    const admin = await operator();
    on.close();
    await vi.waitUntil(
      async () => (await api(admin, "DELETE", `/hosts/${on.hostId}?force=1&loseVolumes=1`)).status === 200,
      10_000,
    );
    expect((await read(key, id)).publicAccess).toMatchObject({ enabled: false, host: null, port: null });
  });
});
