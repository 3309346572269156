import { mkdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { log } from "./log.ts";

/** The agent's own state in one file, begun anew when it is damaged: all of it can be lost. */
export function openDatabase(file: string, schema: string): DatabaseSync {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  try {
    return withSchema(new DatabaseSync(file), schema);
  } catch (error) {
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
