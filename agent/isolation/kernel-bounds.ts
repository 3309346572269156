import { writeFile } from "node:fs/promises";
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
