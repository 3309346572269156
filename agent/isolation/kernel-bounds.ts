import { readFile, writeFile } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import { mebibyte } from "../docker/mebibyte.ts";
import { log } from "../log.ts";

const most = 2 ** 31 - 1;
/** Below /proc/sys. Those of neighbours: addresses on containers' own networks that somebody asked for, found or not. */
const bounds = (memoryMb: number): Record<string, number> => ({
  "fs/aio-max-nr": most,
  "fs/epoll/max_user_watches": most,
  "fs/inotify/max_user_instances": most,
  "fs/inotify/max_user_watches": most,
  "fs/pipe-user-pages-soft": most,
  // A pair takes 24 kB of which no container is charged: a twentieth of the memory.
  "kernel/pty/max": Math.floor(memoryMb * 2),
  "net/ipv4/neigh/default/gc_thresh2": most,
  "net/ipv4/neigh/default/gc_thresh3": most,
  "net/ipv4/tcp_max_orphans": most,
});
let warned = false;

const hostMb = totalmem() / mebibyte;

/** A larger value set by an operator is kept. @throws if it cannot be read or written */
async function raise(file: string, wanted: number): Promise<void> {
  if (Number(await readFile(file, "utf8")) < wanted) await writeFile(file, String(wanted), { flag: "r+" });
}

/**
 * To the kernel, root in any container is the host's root: one site could use up these per-user and global limits, and
 * no other program, including the agent, could wait for a socket, watch a file or reach a new container. What is
 * counted costs a container's own memory, except pseudoterminals and neighbours, of which each container has as many as
 * its network has addresses.
 */
export async function liftKernelBounds(root = "/", memoryMb = hostMb): Promise<void> {
  for (const [name, wanted] of Object.entries(bounds(memoryMb)))
    try {
      await raise(join(root, "proc/sys", name), wanted);
    } catch (error) {
      if (!warned)
        log("warn", "A limit of the kernel's was not raised: one site may use all of it", { name, error });
      warned = true;
    }
}

/** For visitors and builds: the kernel's default on hosts with much memory. */
const leastConnections = 262_144;

/**
 * A few containers fill the kernel's default. Each entry takes 320 bytes, of which no container is charged: an eightieth
 * of the memory for the host, and as much in each container's own network. Requires the modules loaded by the
 * firewall's rules. A network namespace cannot change its host's.
 */
export async function enlargeConnectionTable(root = "/", memoryMb = hostMb): Promise<void> {
  const wanted = Math.max(leastConnections, Math.floor(memoryMb * 40));
  const file = (name: string) => join(root, "proc/sys/net/netfilter", name);
  await raise(file("nf_conntrack_max"), wanted).catch(() => undefined);
  // The kernel drops what it finds no short chain for.
  await raise(file("nf_conntrack_buckets"), wanted / 4).catch(() => undefined);
}
