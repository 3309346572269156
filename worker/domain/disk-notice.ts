import type { DatabaseType } from "../../protocol/states.ts";

/** `diskMb` null: not measured yet. */
type Held = { type: DatabaseType; diskMb: number | null };

/** How to free disk space; after deleting rows alone, the files keep their size. */
const advice: Record<DatabaseType, string> = {
  postgresql: "delete rows and run VACUUM FULL on their tables",
  mysql: "delete rows and run OPTIMIZE TABLE on their tables",
  redis: "delete keys, which frees disk space at the next rewrite of the append-only file",
};

const gigabytes = (megabytes: number): string => (megabytes / 1024).toFixed(1);
const isOver = (diskMb: number | null, diskGb: number): diskMb is number =>
  diskMb !== null && diskMb > diskGb * 1024;

/** A notice for a database that exceeds its pack's disk space; null if it does not. */
export const diskNotice = ({ type, diskMb, diskGb }: Held & { diskGb: number }): string | null =>
  isOver(diskMb, diskGb)
    ? `The database uses ${gigabytes(diskMb)} GB, and its pack has ${diskGb} GB: choose a larger pack, or ${advice[type]}. Until then it keeps running and is backed up; if it exceeds the pack by more than a tenth, it becomes read-only while its host is short of disk space. Usage is measured every ten minutes while the database runs.`
    : null;

/** Why a database cannot change to a pack, according to its last measurement. */
export const tooFullFor = (
  { type, diskMb }: Held,
  { name, diskGb }: { name: string; diskGb: number },
): string | null =>
  isOver(diskMb, diskGb)
    ? `The database uses ${gigabytes(diskMb)} GB, and ${name} has ${diskGb} GB: ${advice[type]}, or choose a larger pack. Usage is measured every ten minutes while the database runs.`
    : null;
