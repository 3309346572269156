import { rmSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { beforeEach, afterEach, expect, it } from "vitest";
import { migrate, type Database } from "../../scripts/lib/migrate.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let sqlite: DatabaseSync;
let folder: string;
beforeEach(() => {
  sqlite = new DatabaseSync(":memory:");
  folder = temporaryFolder();
});
afterEach(() => sqlite.close());

/** As much of D1 as migrations use. */
function database(): Database {
  type Statement = ReturnType<Database["prepare"]>;
  const prepare = (sql: string, values: unknown[] = []): Statement => ({
    bind: (...bound) => prepare(sql, bound),
    run: async () => sqlite.prepare(sql).run(...(values as string[])),
    all: async () => ({ results: sqlite.prepare(sql).all() as { name: string }[] }),
  });
  return {
    prepare,
    async batch(statements) {
      sqlite.exec("BEGIN");
      for (const statement of statements) await statement.run();
      sqlite.exec("COMMIT");
    },
  };
}

const tables = () =>
  sqlite
    .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%\\_%' ESCAPE '\\'")
    .all()
    .map(({ name }) => name);

it("applies each migration once, in the order of their names", async () => {
  writeFileSync(join(folder, "0001_add.sql"), "ALTER TABLE a ADD b text;\n");
  writeFileSync(
    join(folder, "0000_create.sql"),
    "CREATE TABLE a (id text);\n--> statement-breakpoint\nCREATE TABLE c (id text);\n",
  );
  const applied: string[] = [];
  await migrate(database(), (name) => applied.push(name), folder);
  await migrate(database(), (name) => applied.push(name), folder);
  expect(applied).toEqual(["0000_create.sql", "0001_add.sql"]);
  expect(tables()).toEqual(["a", "c"]);
});

it("leaves a database alone that another version's migrations made", async () => {
  writeFileSync(join(folder, "0000_create.sql"), "CREATE TABLE a (id text);");
  await migrate(database(), undefined, folder);
  rmSync(join(folder, "0000_create.sql"));
  writeFileSync(join(folder, "0000_create_schema.sql"), "CREATE TABLE other (id text);");
  await expect(migrate(database(), undefined, folder)).rejects.toThrow(/start with a new --state-dir/);
  expect(tables()).toEqual(["a"]);
});
