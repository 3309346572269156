import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { log } from "../log.ts";

const most = "2147483647";
let warned = false;

/**
 * The kernel counts these by user, and root in any container is the host's root to it: one site could take them all, and no
 * other program, the ingress's responder included, could watch a file. A container's memory bounds them as well.
 */
export async function liftInotifyLimits(root = "/"): Promise<void> {
  try {
    for (const name of ["max_user_instances", "max_user_watches"])
      await writeFile(join(root, "proc/sys/fs/inotify", name), most, { flag: "r+" });
  } catch (error) {
    if (!warned) log("warn", "A site may keep other programs from watching files (inotify)", { error });
    warned = true;
  }
}
