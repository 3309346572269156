import { mkdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { log } from "./log.ts";

/** What SQLite says of a disk that takes nothing: SQLITE_IOERR, SQLITE_FULL. */
const refusals = [10, 13];

/**
 * The agent's own state in one file, begun anew when it is damaged: all of it can be lost. On a full disk it is in memory, as
 * an agent that is there may make room.
 */
export function openDatabase(file: string, schema: string): DatabaseSync {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  try {
    return withSchema(new DatabaseSync(file), schema);
  } catch (error) {
    if (refusals.includes(((error as { errcode?: number }).errcode ?? 0) & 0xff)) {
      log("error", `${file} cannot be written; what belongs there is kept in memory`, { error });
      return withSchema(new DatabaseSync(":memory:"), schema);
    }
    log("error", `${file} is damaged and begun anew`, { error });
    for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
    return withSchema(new DatabaseSync(file), schema);
  }
}

function withSchema(db: DatabaseSync, schema: string): DatabaseSync {
  try {
    db.exec(`PRAGMA journal_mode = WAL; ${schema}`);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}
