import { build, stop } from "esbuild";
import { createHash } from "node:crypto";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { agentVersion } from "../../agent/version.ts";
import { version as cliVersion } from "../../cli/version.ts";

export const projectRoot = join(import.meta.dirname, "..", "..");

/** Ends esbuild's process; the next bundle starts another. */
export const endBundler = stop;

/** Bundles the embedded Worker as wrangler does: ES modules, without workerd's built-in modules. */
export async function bundleWorker(outfile: string): Promise<void> {
  await build({
    entryPoints: [join(projectRoot, "worker", "embedded", "worker.ts")],
    outfile,
    bundle: true,
    format: "esm",
    target: "es2024",
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*", "node:*"],
    jsx: "automatic",
    jsxImportSource: "hono/jsx",
    minifyWhitespace: true,
    lineLimit: 120,
    sourcemap: "linked",
    logLevel: "error",
  });
}

const sha256 = (file: string): string => createHash("sha256").update(readFileSync(file)).digest("hex");

/**
 * Builds the files that the Worker serves below `public/install`: for hosts agent and responder, their install script,
 * and a manifest with their hashes; for people the command line program, its script and its manifest.
 */
export async function bundleHostPrograms(directory: string): Promise<{ agent: string; responder: string }> {
  const install = join(directory, "install");
  const [agent, responder] = [join(install, "agent.mjs"), join(install, "responder.mjs")];
  const cli = join(install, "berth.mjs");
  await Promise.all([
    bundleNode("agent/main.ts", agent),
    bundleNode("agent/ingress/responder.ts", responder),
    bundleCli(cli),
  ]);
  const manifest = { agentVersion, agentSha256: sha256(agent), responderSha256: sha256(responder) };
  const script = readFileSync(join(projectRoot, "scripts", "install.sh"), "utf8");
  writeFileSync(join(install, "manifest.json"), JSON.stringify(manifest));
  writeFileSync(join(install, "install.sh"), script);
  writeFileSync(join(install, "cli.json"), JSON.stringify({ version: cliVersion, sha256: sha256(cli) }));
  writeFileSync(
    join(install, "cli.sh"),
    readFileSync(join(projectRoot, "scripts", "install-cli.sh"), "utf8"),
  );
  // Source maps are only for this machine's logs.
  writeFileSync(join(directory, ".assetsignore"), "*.map\n");
  return { agent, responder };
}

/**
 * Builds the command line program as one file that Node 20 and later runs. What a command imports when it runs is
 * evaluated then.
 */
export async function bundleCli(outfile: string): Promise<void> {
  await build({
    entryPoints: [join(projectRoot, "cli", "main.ts")],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    minify: true,
    // Errors are told apart by their names.
    keepNames: true,
    legalComments: "none",
    logLevel: "error",
    banner: {
      js: '#!/usr/bin/env node\nimport { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);',
    },
  });
  chmodSync(outfile, 0o755);
}

/**
 * Bundles a Node program into one file. Without ssh2, which dockerode uses for remote engines and an agent never
 * needs.
 */
export async function bundleNode(entry: string, outfile: string): Promise<void> {
  await build({
    entryPoints: [join(projectRoot, entry)],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node22",
    // Node keeps the source in memory, and twice as much of it if a comment has a character beyond Latin-1.
    minifyWhitespace: true,
    lineLimit: 120,
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
