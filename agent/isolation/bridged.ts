import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * Packets between two containers of one bridge, such as build steps of two tenants, pass our rules only while the
 * kernel is configured to show them. Docker did so until 27.3; a rule with `physdev` loads the module, and an
 * operator may have disabled it.
 */
export async function showBridged(tool: string, root = "/"): Promise<void> {
  const file = join(root, "proc/sys/net/bridge", `bridge-nf-call-${tool}`);
  const shown = await readFile(file, "utf8").catch(() => null);
  if (shown?.trim() === "0") await writeFile(file, "1");
}
