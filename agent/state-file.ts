import { chmodSync, closeSync, mkdirSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type * as z from "zod";
import { log } from "./log.ts";

/** SQLite's errors for a disk that accepts no writes: SQLITE_IOERR, SQLITE_FULL. */
const refusals = [10, 13];
/** SQLITE_IOERR_SHORT_READ: the file is truncated. */
const shortRead = 522;

/**
 * Opens the agent's own state, recreating a file that is damaged or has another schema: all of it may be lost and
 * must never keep the agent from working. The old file is kept beside it, once. On a full disk the state is in
 * memory, because a running agent may free space.
 */
export function openDatabase(file: string, schema: string): DatabaseSync {
  try {
    return open(file, schema);
  } catch (error) {
    if (!isRefusal(error)) {
      log(
        "error",
        `${file} is damaged or of another version and is recreated; the old file is kept as ${file}.damaged`,
        {
          error,
        },
      );
      try {
        setAside(file);
        return open(file, schema);
      } catch (again) {
        log("error", `${file} cannot be recreated`, { error: again });
      }
    }
    log("error", `${file} cannot be written; its state is kept in memory`, { error });
    return checked(new DatabaseSync(":memory:"), schema);
  }
}

/** All of the work, or nothing of it. */
export function inTransaction(db: DatabaseSync, work: () => void): void {
  db.exec("BEGIN IMMEDIATE");
  try {
    work();
    db.exec("COMMIT");
  } catch (error) {
    db.exec("ROLLBACK");
    throw error;
  }
}

/** A row's content if it is valid; nothing else about a damaged page can be trusted. */
export function readRow<T>(type: z.ZodType<T>, read: () => unknown): T[] {
  try {
    return [type.parse(read())];
  } catch (error) {
    log("error", "A row of the agent's own state is damaged and skipped", { error });
    return [];
  }
}

function isRefusal(error: unknown): boolean {
  const code = (error as { errcode?: number }).errcode ?? 0;
  return refusals.includes(code & 0xff) && code !== shortRead;
}

function open(file: string, schema: string): DatabaseSync {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  // SQLite gives the files beside it the same permissions.
  closeSync(openSync(file, "a", 0o600));
  chmodSync(file, 0o600);
  return checked(new DatabaseSync(file), schema);
}

/** @throws if a page is damaged or a table differs from this agent's schema */
function checked(db: DatabaseSync, schema: string): DatabaseSync {
  try {
    db.exec(`PRAGMA journal_mode = WAL; ${schema}`);
    const [verdict] = db.prepare("PRAGMA integrity_check(1)").all();
    if (verdict?.["integrity_check"] !== "ok") throw new Error(String(verdict?.["integrity_check"]));
    const there = tablesOf(db);
    const fresh = new DatabaseSync(":memory:");
    fresh.exec(schema);
    const other = tablesOf(fresh).find((sql) => !there.includes(sql));
    fresh.close();
    if (other !== undefined) throw new Error(`It has not ${other}`);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

const tablesOf = (db: DatabaseSync): string[] =>
  db
    .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
    .all()
    .map(({ sql }) => String(sql));

function setAside(file: string): void {
  for (const suffix of ["-wal", "-shm"]) rmSync(file + suffix, { recursive: true, force: true });
  rmSync(`${file}.damaged`, { recursive: true, force: true });
  renameSync(file, `${file}.damaged`);
}
