import type { D1Migration } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, it } from "vitest";
import type { DatabaseCreated } from "../../protocol/api/databases.ts";
import { account, api, bindings, uniqueName } from "./service.ts";

const { queries } = (env as unknown as { TEST_MIGRATIONS: D1Migration[] }).TEST_MIGRATIONS.find(({ name }) =>
  name.includes("heal_reserved_database_names"),
)!;

it("heals the name of a PostgreSQL database that could never be provisioned, and of no other", async () => {
  const key = await account();
  const named = async (type: string, databaseName: string, version: string | null) => {
    const input = { name: uniqueName("data"), type, billingTerm: 1 };
    const { databaseId } = (await api<DatabaseCreated>(key, "POST", "/databases", input)).body;
    const row = bindings.DB.prepare("UPDATE databases SET database_name = ?, version = ? WHERE id = ?");
    await row.bind(databaseName, version, databaseId).run();
    return databaseId;
  };
  const ids = [
    await named("postgresql", "pg_12345678", null),
    await named("postgresql", "pgx_12345678", null),
    await named("postgresql", "pg_23456789", "17.2"),
    await named("mysql", "pg_12345678", null),
  ];
  // What is done twice is done once.
  for (const query of [...queries, ...queries]) await bindings.DB.prepare(query).run();
  const names = ids.map((id) =>
    bindings.DB.prepare("SELECT database_name FROM databases WHERE id = ?").bind(id).first("database_name"),
  );
  expect(await Promise.all(names)).toEqual(["db_pg_12345678", "pgx_12345678", "pg_23456789", "pg_12345678"]);
});
