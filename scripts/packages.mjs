// Installs the packages of package-lock.json where they are missing or older, the project's own Node among them. Runs on any
// installed Node (20 or newer).
import { spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "..");
export const node = join(root, "node_modules", ".bin", "node");

const changedAt = (path) => (existsSync(path) ? statSync(path).mtimeMs : 0);
const lock = join(root, "package-lock.json");
const installed = join(root, "node_modules", ".package-lock.json");

if (!existsSync(node) || changedAt(installed) < changedAt(lock)) {
  console.log("Installing dependencies …");
  // Not `npm ci`: it refuses a lock file that lacks optional packages of other platforms. --no-save leaves the lock alone.
  const npm = spawnSync("npm", ["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
  });
  if (npm.status !== 0) {
    console.error("npm install failed: see its message above. The npm registry must be reachable.");
    process.exit(npm.status ?? 1);
  }
  // npm does not touch the marker if nothing changed.
  spawnSync("touch", [installed]);
}
