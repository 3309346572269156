import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Removes a folder with whatever a tenant put into it: names that are no UTF-8 and paths of any length, as Node cannot. */
export const removeTree = async (path: string): Promise<void> =>
  void (await promisify(execFile)("rm", ["-rf", "--one-file-system", "--", path]));
