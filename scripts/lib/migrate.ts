import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "./project-root.ts";

type Statement = {
  bind(...values: unknown[]): Statement;
  run(): Promise<unknown>;
  all(): Promise<{ results: { name: string }[] }>;
};
/** The part of D1 that Miniflare offers to Node. */
export type Database = { prepare(sql: string): Statement; batch(statements: Statement[]): Promise<unknown> };

const migrations = join(projectRoot, "drizzle");

/** Applies drizzle/*.sql in order, each with its own record in one batch; the table is wrangler's. */
export async function migrate(
  db: Database,
  onApplied: (name: string) => void = () => undefined,
  folder: string = migrations,
): Promise<void> {
  await db
    .prepare(
      "CREATE TABLE IF NOT EXISTS d1_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)",
    )
    .run();
  const { results } = await db.prepare("SELECT name FROM d1_migrations").all();
  const applied = new Set(results.map(({ name }) => name));
  const names = readdirSync(folder).filter((file) => file.endsWith(".sql"));
  // Until 1.0 the migrations may be rewritten.
  if ([...applied].some((name) => !names.includes(name)))
    throw new Error(
      "The database was created by another version of Berth, whose migrations this one does not know: start with a new --state-dir, or go back to that version.",
    );
  for (const name of names.toSorted()) {
    if (applied.has(name)) continue;
    const statements = readFileSync(join(folder, name), "utf8")
      .split(/--> statement-breakpoint\n?/)
      .filter((text) => text.trim());
    await db.batch([
      ...statements.map((text) => db.prepare(text)),
      db.prepare("INSERT INTO d1_migrations (name) VALUES (?)").bind(name),
    ]);
    onApplied(name);
  }
}
