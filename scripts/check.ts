import { spawn } from "node:child_process";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { projectRoot } from "./lib/project-root.ts";

const run = (name: string, args: string[]): Promise<boolean> =>
  new Promise((resolve) => {
    const started = performance.now();
    const child = spawn(join(projectRoot, "node_modules", ".bin", name), args, {
      cwd: projectRoot,
      env: { ...process.env, BERTH_SIMULATION_SECONDS: "5" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.once("close", (code) => {
      const seconds = ((performance.now() - started) / 1000).toFixed(1);
      console.log(`${code === 0 ? "✓" : "✗"} ${name} ${args.join(" ")}  ${seconds} s`);
      if (code !== 0) console.log(output);
      resolve(code === 0);
    });
  });

/** What a project's last check has found is kept, so that only what has changed since is read again. */
const types = (folder: string): Promise<boolean> => {
  const kept = join("node_modules", ".cache", "check", folder, "tsconfig.tsbuildinfo");
  return run("tsc", ["--project", join(folder, "tsconfig.json"), "--incremental", "--tsBuildInfoFile", kept]);
};

const cores = availableParallelism();

/** The fast loop: format, lint, types, unit and workerd tests. */
const results = await Promise.all([
  run("oxfmt", ["--check", "."]),
  run("oxlint", ["--type-aware", "--deny-warnings"]),
  types("."),
  types("worker"),
  types("web"),
  types(join("test", "worker")),
]);
// By default vitest leaves a core free, which is half of two.
results.push(
  await run("vitest", ["run", "--project", "unit", "--project", "worker", `--maxWorkers=${cores}`]),
);
process.exit(results.every(Boolean) ? 0 : 1);
