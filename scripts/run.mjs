// Runs a TypeScript program with the project's own Node. Usage: node scripts/run.mjs <file.ts> [arguments]
import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { node, root } from "./packages.mjs";

const [file, ...rest] = process.argv.slice(2);
const child = spawn(node, ["--disable-warning=ExperimentalWarning", join(root, file), ...rest], {
  cwd: root,
  // The channel closes when this process ends in any way.
  stdio: ["inherit", "inherit", "inherit", "ipc"],
  env: { ...process.env, PATH: `${dirname(node)}:${process.env.PATH}` },
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
// npm may be killed without a signal to this process.
if (process.env.npm_lifecycle_event) {
  const npm = process.ppid;
  setInterval(() => process.ppid === npm || child.kill("SIGTERM"), 1000).unref();
}
child.on("exit", (code, signal) => process.exit(code ?? (signal ? 1 : 0)));
