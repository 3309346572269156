import type { Writes } from "./database-engine.ts";
import { engines } from "./index.ts";
import { refusalIn } from "./server-refusal.ts";
import type { Engine } from "../docker/engine.ts";
import { log } from "../log.ts";
import type { DatabaseHolding } from "../running/disk-use.ts";
import type { Records } from "../running/records.ts";

type Means = { engine: Engine; records: Pick<Records, "addEvent"> };
type Limited = { containerId: string; writes: Writes; sinceMb: number };

/** A database larger than its pack by this factor becomes read-only if the host is short of disk. */
const tolerance = 1.1;
const timeoutMs = 60_000;

/**
 * Keeps databases from filling the shared disk. A limit lasts until the database is below its pack's size again or
 * has a new container: a start allows everything, so that a larger pack helps at once.
 */
export class WriteLimits {
  private readonly means: Means;
  /** The last limit applied per database; unknown if there is none, because an earlier agent may have applied one. */
  private readonly limited = new Map<string, Limited>();

  constructor(means: Means) {
    this.means = means;
  }

  async judge(holding: DatabaseHolding, isShort: boolean): Promise<void> {
    const { databaseId, containerId, usedMb, diskGb } = holding;
    if (diskGb === 0) return;
    const last = this.limited.get(databaseId);
    const before = last?.containerId === containerId ? last : undefined;
    const writes = next(before, holding, isShort);
    const isNew = writes !== before?.writes;
    // Applied repeatedly, because a rotation lifts the limit.
    if (writes === undefined || (writes === "all" && !isNew)) return;
    if (!(await this.limit(containerId, writes)) || !isNew) return;
    this.limited.set(databaseId, { containerId, writes, sinceMb: usedMb });
    // Being below its pack's size is no news if this agent never applied a limit.
    if (writes === "all" && before === undefined) return;
    log("warn", "A database's write limit changed", { databaseId, writes });
    this.means.records.addEvent(databaseId, "", {
      at: new Date().toISOString(),
      kind: "disk_full",
      detail: says(writes, holding),
    });
  }

  private async limit(containerId: string, writes: Writes): Promise<boolean> {
    const found = await this.means.engine.inspectContainer(containerId);
    if (!found?.running) return false;
    const variables = new Map(
      found.env.map((one) => [one.split("=", 1)[0], one.slice(one.indexOf("=") + 1)]),
    );
    for (const { limitWrites } of Object.values(engines)) {
      const databaseName = variables.get(limitWrites?.envName);
      if (!limitWrites || databaseName === undefined) continue;
      const adminPassword = variables.get("MARIADB_ROOT_PASSWORD") ?? "";
      const program = limitWrites.program({ databaseName, adminPassword }, writes);
      const { exitCode, stderr } = await this.means.engine.execute(
        containerId,
        program,
        AbortSignal.timeout(timeoutMs),
      );
      if (exitCode !== 0)
        throw new Error(`${program.command[0]} ended with ${exitCode}: ${refusalIn(stderr)}`);
      return true;
    }
    return false;
  }
}

/** undefined: no change. */
function next(
  before: Limited | undefined,
  { usedMb, diskGb }: DatabaseHolding,
  isShort: boolean,
): Writes | undefined {
  const packMb = diskGb * 1024;
  if (usedMb <= packMb) return "all";
  if (!isShort || usedMb <= packMb * tolerance) return undefined;
  if (before?.writes === "none") return "none";
  // A read-only database that still grows is circumventing the limit.
  return before?.writes === "less" && usedMb > before.sinceMb + packMb * (tolerance - 1) ? "none" : "less";
}

const says = (writes: Writes, { usedMb, diskGb }: DatabaseHolding): string =>
  ({
    all: "The database is below its pack's disk limit again and accepts writes.",
    less: `The database holds ${(usedMb / 1024).toFixed(1)} GB, its pack has ${diskGb} GB and its host is short of disk: it is read-only, and its connections were closed. Choose a larger pack, or remove data that is no longer needed: in PostgreSQL in a session that begins with SET default_transaction_read_only = off, in MariaDB by TRUNCATE and DROP, which are still allowed.`,
    none: `The database kept growing while it was read-only, to ${(usedMb / 1024).toFixed(1)} GB of ${diskGb} GB: its logins are locked. Choose a larger pack.`,
  })[writes];
