import type { DatabaseType } from "../../protocol/states.ts";

/** `diskMb` null: its host never measured it. */
type Held = { type: DatabaseType; diskMb: number | null };

/** What gives room back: deleting rows alone leaves the files as large as they were. */
const advice: Record<DatabaseType, string> = {
  postgresql: "delete rows and run VACUUM FULL on their tables",
  mysql: "delete rows and run OPTIMIZE TABLE on their tables",
  redis: "delete keys, which gives room back when the server next writes its log anew",
};

const gigabytes = (megabytes: number): string => (megabytes / 1024).toFixed(1);
const isOver = (diskMb: number | null, diskGb: number): diskMb is number =>
  diskMb !== null && diskMb > diskGb * 1024;

/** Says that a database holds more than its pack has, and what to do; null where it does not. */
export const diskNotice = ({ type, diskMb, diskGb }: Held & { diskGb: number }): string | null =>
  isOver(diskMb, diskGb)
    ? `The database holds ${gigabytes(diskMb)} GB and its pack has ${diskGb} GB: choose a larger pack, or ${advice[type]}. Until then it goes on running, and is backed up; more than a tenth over it, it is read-only while its host is short of disk. What it holds is measured every ten minutes while it runs.`
    : null;

/** Why a database cannot have a pack, by what is known of it. */
export const tooFullFor = (
  { type, diskMb }: Held,
  { name, diskGb }: { name: string; diskGb: number },
): string | null =>
  isOver(diskMb, diskGb)
    ? `The database holds ${gigabytes(diskMb)} GB, and ${name} has ${diskGb} GB: ${advice[type]}, or choose a larger pack. What it holds is measured every ten minutes while it runs.`
    : null;
