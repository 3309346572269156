import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { log } from "../log.ts";

const bounds = ["inotify/max_user_instances", "inotify/max_user_watches", "aio-max-nr"];
const most = "2147483647";
let warned = false;

/**
 * To the kernel, root in any container is the host's root: one site could use up these per-user and global limits,
 * and no other program, including the ingress's responder, could watch a file. The watches themselves count towards a
 * container's memory.
 */
export async function liftKernelBounds(root = "/"): Promise<void> {
  try {
    for (const name of bounds) await writeFile(join(root, "proc/sys/fs", name), most, { flag: "r+" });
  } catch (error) {
    if (!warned)
      log("warn", "The limits on file watches were not raised: one site may use all of them", { error });
    warned = true;
  }
}

/** The kernel's default on hosts with much memory; its default on small hosts is filled by a few containers. */
const leastConnections = 262_144;

/**
 * Requires the modules loaded by the firewall's rules. A larger value set by an operator is kept; a network namespace
 * cannot change its host's.
 */
export async function enlargeConnectionTable(root = "/"): Promise<void> {
  const file = join(root, "proc/sys/net/netfilter/nf_conntrack_max");
  const most = Number(await readFile(file, "utf8").catch(() => "NaN"));
  if (most < leastConnections)
    await writeFile(file, String(leastConnections), { flag: "r+" }).catch(() => undefined);
}
