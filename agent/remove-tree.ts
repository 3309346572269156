import { execFile } from "node:child_process";
import { lstatSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { promisify } from "node:util";

const mostTries = 10;

/** Removes a folder with whatever a tenant put into it: names that are no UTF-8 and paths of any length, as Node cannot. */
export async function removeTree(path: string): Promise<void> {
  // No process where there is nothing, as before most deployments.
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return;
  for (let tries = 1; ; tries++)
    try {
      await promisify(execFile)("rm", ["-rf", "--one-file-system", "--", path]);
      return;
    } catch (error) {
      // A program of Git's that was ended may still write.
      if (tries === mostTries) throw error;
      await setTimeout(50);
    }
}
