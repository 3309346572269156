import { readFile, writeFile } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import { minReplicaMb } from "../../protocol/api/volumes.ts";
import { mebibyte } from "../docker/mebibyte.ts";
import { log } from "../log.ts";
import { maxConnections } from "./rules.ts";

/** Below /proc/sys. Those of neighbours: addresses on containers' own networks that somebody asked for, found or not. */
const bounds = [
  "fs/aio-max-nr",
  "fs/epoll/max_user_watches",
  "fs/inotify/max_user_instances",
  "fs/inotify/max_user_watches",
  "fs/pipe-user-pages-soft",
  "kernel/pty/max",
  "net/ipv4/neigh/default/gc_thresh2",
  "net/ipv4/neigh/default/gc_thresh3",
  "net/ipv4/tcp_max_orphans",
];
const most = "2147483647";
let warned = false;

/**
 * To the kernel, root in any container is the host's root: one site could use up these per-user and global limits, and
 * no other program, including the agent, could wait for a socket, watch a file or reach a new container. What is
 * counted costs a container's own memory, except neighbours, which are no more than its network has addresses.
 */
export async function liftKernelBounds(root = "/"): Promise<void> {
  for (const name of bounds)
    try {
      await writeFile(join(root, "proc/sys", name), most, { flag: "r+" });
    } catch (error) {
      if (!warned)
        log("warn", "A limit of the kernel's was not raised: one site may use all of it", { name, error });
      warned = true;
    }
}

/** For visitors and builds: the kernel's default on hosts with much memory. */
const leastConnections = 262_144;

/**
 * Has room for what all containers that fit into the host's memory may hold together, or those of one account could
 * leave none for visitors. Requires the modules loaded by the firewall's rules. A larger value set by an operator is
 * kept; a network namespace cannot change its host's.
 */
export async function enlargeConnectionTable(root = "/", memoryMb = totalmem() / mebibyte): Promise<void> {
  const file = join(root, "proc/sys/net/netfilter/nf_conntrack_max");
  const wanted = leastConnections + Math.floor(memoryMb / minReplicaMb) * maxConnections;
  const present = Number(await readFile(file, "utf8").catch(() => "NaN"));
  if (present < wanted) await writeFile(file, String(wanted), { flag: "r+" }).catch(() => undefined);
}
