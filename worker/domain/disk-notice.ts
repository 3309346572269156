import type { DatabaseType } from "../../protocol/states.ts";
import { databaseEngines } from "./database-engines.ts";

/** `diskMb` null: not measured yet. */
type Held = { type: DatabaseType; diskMb: number | null };

const gigabytes = (megabytes: number): string => (megabytes / 1024).toFixed(1);
const isOver = (diskMb: number | null, diskGb: number): diskMb is number =>
  diskMb !== null && diskMb > diskGb * 1024;

/** A notice for a database that exceeds its pack's disk space; null if it does not. */
export const diskNotice = ({ type, diskMb, diskGb }: Held & { diskGb: number }): string | null =>
  isOver(diskMb, diskGb)
    ? `The database uses ${gigabytes(diskMb)} GB, and its pack has ${diskGb} GB: choose a larger pack, or ${databaseEngines[type].freeDiskAdvice}. Until then it keeps running and is backed up; if it exceeds the pack by more than a tenth, it becomes read-only while its host is short of disk space. Usage is measured every ten minutes while the database runs.`
    : null;

/** Why a database cannot change to a pack, according to its last measurement. */
export const tooFullFor = (
  { type, diskMb }: Held,
  { name, diskGb }: { name: string; diskGb: number },
): string | null =>
  isOver(diskMb, diskGb)
    ? `The database uses ${gigabytes(diskMb)} GB, and ${name} has ${diskGb} GB: ${databaseEngines[type].freeDiskAdvice}, or choose a larger pack. Usage is measured every ten minutes while the database runs.`
    : null;
