// Runs on the Node that is there (20 or newer): installs what package-lock.json names, then hands over to the project's own Node.
// Usage: node scripts/run.mjs <file.ts> [arguments]
import { spawn, spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const [file, ...rest] = process.argv.slice(2);
const node = join(root, "node_modules", ".bin", "node");

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
  // npm leaves the marker alone when nothing changed.
  spawnSync("touch", [installed]);
}

const child = spawn(node, ["--disable-warning=ExperimentalWarning", join(root, file), ...rest], {
  cwd: root,
  // The channel tells the child when this process is gone, however it ended.
  stdio: ["inherit", "inherit", "inherit", "ipc"],
  env: { ...process.env, PATH: `${join(root, "node_modules", ".bin")}:${process.env.PATH}` },
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
// npm can be killed without a word as well.
if (process.env.npm_lifecycle_event) {
  const npm = process.ppid;
  setInterval(() => process.ppid === npm || child.kill("SIGTERM"), 1000).unref();
}
child.on("exit", (code, signal) => process.exit(code ?? (signal ? 1 : 0)));
