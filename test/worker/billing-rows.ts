import { randomBytes } from "node:crypto";
import { expect } from "vitest";
import { formatId, type Id, type IdKind } from "../../protocol/ids.ts";
import type { Ctx } from "../../worker/ctx.ts";
import type { Termed } from "../../worker/db/resource.ts";
import { addDays } from "../../worker/domain/pricing.ts";
import { bindings, uniqueName } from "./service.ts";
import { rows } from "./stripe-service.ts";
import { ctxAt } from "./terms-service.ts";

/** The moment at which tests that write rows themselves call the code. */
export const now = new Date("2026-03-10T12:00:00.000Z");
export const at = (days: number, milliseconds = 0): number => addDays(now, days).getTime() + milliseconds;
export const minutes = (count: number): number => now.getTime() + count * 60_000;

type Value = string | number | null;
export type Row = Record<string, Value>;
export const newId = <K extends IdKind>(kind: K): Id<K> => formatId(kind, now.getTime(), randomBytes(10));

export const insert = (table: string, row: Row): D1PreparedStatement => {
  const columns = Object.keys(row);
  return bindings.DB.prepare(
    `INSERT INTO ${table} (${columns.map((name) => `"${name}"`).join()}) VALUES (${columns.map(() => "?").join()})`,
  ).bind(...Object.values(row));
};
export const update = (table: string, id: string, row: Row): D1PreparedStatement =>
  bindings.DB.prepare(
    `UPDATE ${table} SET ${Object.keys(row)
      .map((name) => `${name} = ?`)
      .join()} WHERE id = ?`,
  ).bind(...Object.values(row), id);
export const write = (...statements: D1PreparedStatement[]) => bindings.DB.batch(statements);

const written = [
  "sites databases invoices checkouts payment_flags refunds credit_purchases jobs deployments commands",
  "mails activity site_volumes database_links backups",
].flatMap((names) => names.split(" "));
export const packIds = {
  small: "pack_small",
  large: "pack_large",
} as const;

/** Nothing that has a term or can be paid, two packs and one host with room for 4000 MB. */
export async function begin(): Promise<{ hostId: Id<"host"> }> {
  const hostId = newId("host");
  const pack = (id: string, price_cents: number, memory_mb: number) =>
    bindings.DB.prepare(
      `INSERT OR REPLACE INTO packs (id, kind, name, price_cents, currency, memory_mb, cpu_milli, pids, disk_gb, discounts)
        VALUES (?, 'site', ?, ?, 'eur', ?, 500, 100, 10, '{"3":10}')`,
    ).bind(id, id === packIds.small ? "Small" : "Large", price_cents, memory_mb);
  await write(
    ...written.map((table) => bindings.DB.prepare(`DELETE FROM ${table}`)),
    bindings.DB.prepare("DELETE FROM hosts"),
    pack(packIds.small, 1000, 256),
    pack(packIds.large, 5000, 1024),
    hostRow(hostId, 4512),
  );
  return { hostId };
}

export const hostRow = (id: string, memory_mb: number, more: Row = {}) =>
  insert("hosts", {
    id,
    name: id,
    status: "ACTIVE",
    token_hash: id,
    memory_mb,
    created_at: 0,
    connected_at: 0,
    ...more,
  });

export const accountRow = (id: string, more: Row = {}) =>
  insert("accounts", { id, name: "Test", email: `${id}@example.com`, created_at: 0, updated_at: 0, ...more });

/** What runs on a host, is paid for, and has the smaller pack. */
export function resourceRow(kind: Termed, row: Row & { id: string; account_id: string }) {
  const common = {
    name: row.id.slice(-12),
    status: "RUNNING",
    wanted: "RUNNING",
    pack_id: packIds.small,
    billing_term: 1,
    paid_until: at(20),
    created_at: 0,
    updated_at: 0,
  };
  const own: Row =
    kind === "sites"
      ? {
          deploy_type: "image",
          port: 80,
          slug: row.id,
          webhook_hash: row.id,
          current_deployment_id: `dep_${row.id}`,
          serving: 1,
        }
      : {
          type: "postgresql",
          image: "postgres",
          version: "17.2",
          database_name: "data",
          admin_password_sealed: "",
          password_sealed: "",
        };
  return insert(kind, { ...common, ...own, ...row });
}

export const invoiceRow = (row: Row & { account_id: string }) => {
  const id = newId("invoice");
  return insert("invoices", {
    id,
    token: `inv_${id}`,
    kind: "renewal",
    status: "unpaid",
    amount_cents: 1000,
    currency: "eur",
    lines: "[]",
    term_months: 1,
    pack_id: packIds.small,
    created_at: at(-30),
    due_at: at(20),
    ...row,
  });
};

export const checkoutRow = (invoice_id: string, status: string, more: Row = {}) =>
  insert("checkouts", {
    id: newId("checkout"),
    invoice_id,
    number: 1,
    processor: "test",
    session_id: uniqueName("session"),
    status,
    created_at: 0,
    expires_at: at(1),
    check_at: at(1),
    ...more,
  });

export type Billed = { id: Id<"invoice">; accountId: Id<"account"> };
/** An invoice for credits at 1000 cents. */
export async function billed(more: Row = {}, credits = 700): Promise<Billed> {
  const [id, accountId] = [newId("invoice"), newId("account")];
  await write(
    invoiceRow({
      id,
      account_id: accountId,
      kind: "credits",
      resource_id: null,
      term_months: null,
      pack_id: null,
      ...more,
    }),
    insert("credit_purchases", { invoice_id: id, package_id: "cpk_1", credits }),
  );
  return { id, accountId };
}
export const paymentRow = (invoice_id: string, reference: string, more: Row = {}) =>
  insert("payments", {
    id: newId("payment"),
    invoice_id,
    processor: "test",
    reference,
    amount_cents: 1000,
    currency: "eur",
    created_at: 0,
    ...more,
  });

export const jobRow = (kind: Termed, id: string, row: Row) =>
  insert("jobs", {
    id: newId("job"),
    lane: id,
    [kind === "sites" ? "site_id" : "database_id"]: id,
    account_id: "acc",
    status: "DONE",
    deadline_at: at(1),
    created_at: at(-1),
    ...row,
  });

export type Made = { id: Id<"site"> & Id<"database">; accountId: Id<"account">; name: string };
/** How a resource differs from what the test is about, and what is beside it. */
export type Case = { row?: Row; account?: Row; beside?: (made: Made) => D1PreparedStatement[] };

/** One resource per case, each of another account. @param common what all have */
export async function make<Name extends string>(
  kind: Termed,
  common: Case,
  cases: Record<Name, Case>,
): Promise<Record<Name, Made>> {
  const found = {} as Record<Name, Made>;
  const statements: D1PreparedStatement[] = [];
  for (const [name, one] of Object.entries<Case>(cases)) {
    const id = newId(kind === "sites" ? "site" : "database") as Made["id"];
    const row = { id, account_id: newId("account"), name: id.slice(-12), ...common.row, ...one.row };
    const made: Made = {
      id,
      accountId: row.account_id,
      name: row.name,
    };
    found[name as Name] = made;
    statements.push(
      accountRow(row.account_id, { ...common.account, ...one.account }),
      resourceRow(kind, row),
      ...(one.beside ?? common.beside ?? (() => []))(made),
    );
  }
  await write(...statements);
  return found;
}

/** The names of the cases that a query finds by their resource's id. */
export async function named(
  made: Record<string, Made>,
  query: string,
  ...values: Value[]
): Promise<string[]> {
  const ids = new Set((await rows<{ id: string }>(query, ...values)).map(({ id }) => id));
  return Object.keys(made)
    .filter((name) => ids.has(made[name]?.id ?? ""))
    .toSorted();
}
export const yes = (cases: Record<string, Case & { is?: boolean }>): string[] =>
  Object.keys(cases)
    .filter((name) => cases[name]?.is !== false)
    .toSorted();

/** The only row that a query finds. */
export const one = async <Found = Record<string, unknown>>(query: string, ...values: (string | number)[]) => {
  const [found, ...more] = await rows<Found>(query, ...values);
  expect(more).toEqual([]);
  return found;
};
export const rowOf = (table: string, id: string) => one(`SELECT * FROM ${table} WHERE id = ?`, id);
export const statusOf = async (table: string, id: string) => (await rowOf(table, id))?.["status"];

/** A context whose hints to hosts are kept. */
export function listening(time: Date = now) {
  const hints: unknown[][] = [];
  const hosts = new Proxy({} as Ctx["hosts"], {
    get:
      (_, name) =>
      (...given: unknown[]) =>
        void hints.push([name, ...given]),
  });
  const woken = () => hints.filter(([name]) => name === "wake").map(([, hostId]) => hostId);
  return { ctx: { ...ctxAt(time), hosts }, hints, woken };
}

type Before = (D1PreparedStatement | (() => Promise<unknown>))[];
const happen = async (before: Before) => {
  for (const one of before) await (typeof one === "function" ? one() : one.run());
};

/** The same context, in which something else happens just before each batch. */
export function interrupted(ctx: Ctx, ...before: Before): Ctx {
  const db = Object.create(ctx.db, {
    batch: {
      value: async (statements: Parameters<Ctx["db"]["batch"]>[0]) => {
        await happen(before);
        return ctx.db.batch(statements);
      },
    },
  }) as Ctx["db"];
  return { ...ctx, db };
}

/** The same before each statement that is in no batch. */
export function interruptedAlone(ctx: Ctx, ...before: Before): Ctx {
  const statement: Ctx["statement"] = (query) => {
    const own = ctx.statement(query);
    const run = own.execute.bind(own);
    own.execute = async () => {
      await happen(before);
      return run();
    };
    return own;
  };
  return { ...ctx, statement };
}
