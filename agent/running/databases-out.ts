import { containerName, stopGraceSeconds } from "../docker/database-objects.ts";
import type { Engine } from "../docker/engine.ts";
import type { DatabaseCrash, DatabaseOut, Records } from "./records.ts";

/**
 * Databases whose server kept exiting. The container is stopped and kept for its log until somebody starts the
 * database. A database whose container was started later, or is gone, no longer counts.
 */
type Means = { engine: Engine; records: Records };

/** Repeatable after an interruption of the agent. */
export async function takeOutDatabase({ engine, records }: Means, out: DatabaseOut): Promise<DatabaseCrash> {
  await engine.stopContainer(out.containerId, stopGraceSeconds);
  const crash = { ...out.crash, at: new Date().toISOString() };
  records.addDatabaseOut({ ...out, crash, isOut: true });
  return crash;
}

/** The crashes that the control plane does not know yet. */
export async function databaseCrashes(means: Means): Promise<DatabaseCrash[]> {
  const crashes = [];
  for (const out of means.records.databasesOut()) {
    if (!out.isOut || out.isKnown) continue;
    if (await isStillOut(means, out)) crashes.push(out.crash);
    else forget(means, out);
  }
  return crashes;
}

export function databaseCrashKnown(
  records: Records,
  { databaseId, at }: Pick<DatabaseCrash, "databaseId" | "at">,
): void {
  const out = records.databasesOut().find(({ crash }) => crash.databaseId === databaseId && crash.at === at);
  if (out) records.addDatabaseOut({ ...out, isKnown: true });
}

/** Databases that a starting agent must leave stopped. */
export async function databasesStillOut(means: Means): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  for (const out of means.records.databasesOut()) {
    if (!out.isOut || (await isStillOut(means, out))) ids.add(out.crash.databaseId);
    else forget(means, out);
  }
  return ids;
}

async function isStillOut({ engine }: Means, { crash, containerId }: DatabaseOut): Promise<boolean> {
  const found = await engine.inspectContainer(containerName(crash.databaseId));
  return found?.id === containerId && !found.running && (found.startedAt ?? 0) <= new Date(crash.at);
}

/** Unless another crash has replaced it. */
function forget({ records }: Means, { crash }: DatabaseOut): void {
  const now = records.databasesOut().find((one) => one.crash.databaseId === crash.databaseId);
  if (now?.crash.at === crash.at) records.forgetDatabaseOut(crash.databaseId);
}
