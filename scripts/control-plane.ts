import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { unstable_getMiniflareWorkerOptions as workerOptionsOf } from "wrangler";
import { projectRoot } from "./lib/bundle.ts";

/**
 * The Worker in workerd on this machine, with the bindings that wrangler.toml names.
 * Usage: control-plane.ts <bundle> <state directory> <port>; variables come as JSON in BERTH_BINDINGS.
 */
const [bundle = "", stateDirectory = "", port = ""] = process.argv.slice(2);
const bindings = JSON.parse(process.env["BERTH_BINDINGS"] ?? "{}") as Record<string, string>;
const { workerOptions } = workerOptionsOf(join(projectRoot, "wrangler.toml"));

// Wrangler still describes a Worker in Miniflare 4's words; Miniflare translates them, and restarts a killed workerd.
const miniflare = new Miniflare(
  convertV4MiniflareOptions({
    ...(workerOptions as object),
    name: "berth",
    modules: [{ type: "ESModule", path: bundle, contents: readFileSync(bundle) }],
    modulesRoot: join(bundle, ".."),
    bindings: { ...(workerOptions.bindings as Record<string, string>), ...bindings },
    host: "127.0.0.1",
    port: Number(port),
    resourcePersistencePath: join(stateDirectory, "state"),
    telemetry: { enabled: false },
  } as unknown as Parameters<typeof convertV4MiniflareOptions>[0]),
);

const db = (await miniflare.getD1Database("DB")) as unknown as Database;
await migrate(db);
await miniflare.ready;
process.stdout.write("listening\n");

const worker = await miniflare.getWorker();
setInterval(() => {
  (worker as unknown as { scheduled(options: object): Promise<unknown> })
    .scheduled({ cron: "* * * * *" })
    .catch((error: unknown) => console.error(error));
}, 60_000).unref();

async function stop(): Promise<void> {
  await miniflare.dispose();
  process.exit(0);
}
process.once("SIGTERM", () => void stop());
process.once("SIGINT", () => void stop());
process.stdin.on("end", () => void stop()).resume();

type Statement = {
  bind(...values: unknown[]): Statement;
  run(): Promise<unknown>;
  all(): Promise<{ results: { name: string }[] }>;
};
type Database = { prepare(sql: string): Statement; batch(statements: Statement[]): Promise<unknown> };

/** Applies drizzle/*.sql in order, each with its own record in one batch; the table is the one wrangler keeps. */
async function migrate(db: Database): Promise<void> {
  await db
    .prepare(
      "CREATE TABLE IF NOT EXISTS d1_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)",
    )
    .run();
  const { results } = await db.prepare("SELECT name FROM d1_migrations").all();
  const applied = new Set(results.map(({ name }) => name));
  const folder = join(projectRoot, "drizzle");
  for (const name of readdirSync(folder)
    .filter((file) => file.endsWith(".sql"))
    .toSorted()) {
    if (applied.has(name)) continue;
    const statements = readFileSync(join(folder, name), "utf8")
      .split(/--> statement-breakpoint\n?/)
      .filter((text) => text.trim());
    await db.batch([
      ...statements.map((text) => db.prepare(text)),
      db.prepare("INSERT INTO d1_migrations (name) VALUES (?)").bind(name),
    ]);
    process.stdout.write(`applied ${name}\n`);
  }
}
