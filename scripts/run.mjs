// Runs on any installed Node (20 or newer): installs the packages of package-lock.json, then starts the project's own Node.
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
  // npm does not touch the marker if nothing changed.
  spawnSync("touch", [installed]);
}

// The service works little and waits long.
const small =
  file === "scripts/start.ts" ? ["--max-semi-space-size=1", "--optimize-for-size", "--v8-pool-size=1"] : [];
const child = spawn(node, ["--disable-warning=ExperimentalWarning", ...small, join(root, file), ...rest], {
  cwd: root,
  // The channel closes when this process ends in any way.
  stdio: ["inherit", "inherit", "inherit", "ipc"],
  env: { ...process.env, PATH: `${join(root, "node_modules", ".bin")}:${process.env.PATH}` },
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
// npm may be killed without a signal to this process.
if (process.env.npm_lifecycle_event) {
  const npm = process.ppid;
  setInterval(() => process.ppid === npm || child.kill("SIGTERM"), 1000).unref();
}
child.on("exit", (code, signal) => process.exit(code ?? (signal ? 1 : 0)));
