import { readFileSync } from "node:fs";

const bootIdFile = "/proc/sys/kernel/random/boot_id";
let bootId: string | undefined;

/**
 * Tells the process that has a container's address from every other one: its number, when it began (proc_pid_stat(5), ticks since
 * boot) and the boot. Undefined: it has ended, or cannot be seen from here.
 */
export function holderOf(pid: number): string | undefined {
  try {
    bootId ??= readFileSync(bootIdFile, "latin1").trim();
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // What stands before may be anything, as the process named itself.
    const [state = "", ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return "ZX".includes(state) ? undefined : [pid, fields[18], bootId].join(" ");
  } catch {
    return undefined;
  }
}

/** Once it has ended, its address may be another container's. */
export const stillHolds = (holder: string): boolean => holderOf(Number.parseInt(holder, 10)) === holder;
