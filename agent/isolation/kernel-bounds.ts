import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { log } from "../log.ts";

const bounds = ["inotify/max_user_instances", "inotify/max_user_watches", "aio-max-nr"];
const most = "2147483647";
let warned = false;

/**
 * Root in any container is the host's root to the kernel, and one site could take all that these leave to a user, or to all: no
 * other program, the ingress's responder included, could watch a file. What they count is a container's own memory as well.
 */
export async function liftKernelBounds(root = "/"): Promise<void> {
  try {
    for (const name of bounds) await writeFile(join(root, "proc/sys/fs", name), most, { flag: "r+" });
  } catch (error) {
    if (!warned) log("warn", "A site may keep other programs from watching files", { error });
    warned = true;
  }
}

/** As many as a host with much memory is given: on a small one, few containers would fill the table of connections. */
const leastConnections = 262_144;

/** What the firewall's rules have loaded by then. An operator's larger one stays; a namespace cannot change its host's. */
export async function enlargeConnectionTable(root = "/"): Promise<void> {
  const file = join(root, "proc/sys/net/netfilter/nf_conntrack_max");
  const most = Number(await readFile(file, "utf8").catch(() => "NaN"));
  if (most < leastConnections)
    await writeFile(file, String(leastConnections), { flag: "r+" }).catch(() => undefined);
}
