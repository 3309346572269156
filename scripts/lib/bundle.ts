import { build } from "esbuild";
import { join } from "node:path";

export const projectRoot = join(import.meta.dirname, "..", "..");

/** The Worker as wrangler bundles it: ES modules, workerd's own modules left outside. */
export async function bundleWorker(outfile: string): Promise<void> {
  await build({
    entryPoints: [join(projectRoot, "worker", "index.ts")],
    outfile,
    bundle: true,
    format: "esm",
    target: "es2024",
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*", "node:*"],
    jsx: "automatic",
    jsxImportSource: "hono/jsx",
    sourcemap: "linked",
    logLevel: "error",
  });
}

/** A Node program as one file. ssh2 is dockerode's way to remote engines, which an agent never uses. */
export async function bundleNode(entry: string, outfile: string): Promise<void> {
  await build({
    entryPoints: [join(projectRoot, entry)],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node22",
    sourcemap: "linked",
    logLevel: "error",
    banner: {
      js: 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url); const __filename = import.meta.filename; const __dirname = import.meta.dirname;',
    },
    plugins: [
      {
        name: "without-ssh",
        setup(bundler) {
          bundler.onResolve({ filter: /^ssh2$/ }, () => ({ path: "ssh2", namespace: "without-ssh" }));
          bundler.onLoad({ filter: /.*/, namespace: "without-ssh" }, () => ({
            contents: "module.exports = {};",
          }));
        },
      },
    ],
  });
}
