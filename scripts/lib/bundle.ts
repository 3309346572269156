import { build, type BuildOptions, type Plugin } from "esbuild";
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { chmodSync, copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { versionOfProgram } from "../../agent/version.ts";
import type { Operation } from "../../protocol/api/operations.ts";
import { version as cliVersion } from "../../cli/version.ts";
import { projectRoot } from "./project-root.ts";

/** What workerd runs, as wrangler bundles it: ES modules, without workerd's built-in modules. */
export const forWorkerd = {
  bundle: true,
  format: "esm",
  target: "es2024",
  conditions: ["workerd", "worker", "browser"],
  external: ["cloudflare:*", "node:*"],
  jsx: "automatic",
  jsxImportSource: "hono/jsx",
  logLevel: "error",
} satisfies BuildOptions;

/** Bundles the embedded Worker. */
export async function bundleWorker(outfile: string): Promise<void> {
  await build({
    ...forWorkerd,
    entryPoints: [join(projectRoot, "worker", "embedded", "worker.ts")],
    outfile,
    minifyWhitespace: true,
    lineLimit: 120,
    sourcemap: "linked",
  });
}

/** Bundles a program that `npm start` keeps running on this machine: it would hold 17 MB for the compiler of TypeScript. */
export async function bundleLocal(name: "start" | "control-plane", outfile: string): Promise<void> {
  const miniflare = createRequire(import.meta.url).resolve("miniflare");
  await build({
    entryPoints: [join(projectRoot, "scripts", `${name}.ts`)],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node24",
    minifyWhitespace: true,
    minifySyntax: true,
    lineLimit: 120,
    logLevel: "error",
    // Miniflare reads files beside itself, and loads these only where they are needed.
    external: ["sharp", "workerd", "youch"],
    define: {
      __dirname: JSON.stringify(dirname(miniflare)),
      __filename: JSON.stringify(miniflare),
      "import.meta.dirname": JSON.stringify(join(projectRoot, "scripts", "lib")),
    },
    banner: {
      js: `import { createRequire as __createRequire } from "node:module"; const require = __createRequire(${JSON.stringify(miniflare)});`,
    },
    plugins: [withoutUnused, requiredBuiltins],
  });
}

const sha256 = (file: string): string => createHash("sha256").update(readFileSync(file)).digest("hex");

/**
 * Builds the files that the Worker serves below `public/install`: for hosts agent and responder, their install script,
 * and a manifest with their hashes; for people the command line program, its man page, its script and its manifest.
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
  const agentSha256 = sha256(agent);
  const manifest = {
    agentVersion: versionOfProgram(agentSha256),
    agentSha256,
    responderSha256: sha256(responder),
  };
  const script = readFileSync(join(projectRoot, "scripts", "install.sh"), "utf8");
  writeFileSync(join(install, "manifest.json"), JSON.stringify(manifest));
  writeFileSync(join(install, "install.sh"), script);
  writeFileSync(join(install, "cli.json"), JSON.stringify({ version: cliVersion, sha256: sha256(cli) }));
  copyFileSync(join(projectRoot, "cli", "berth.1"), join(install, "berth.1"));
  writeFileSync(
    join(install, "cli.sh"),
    readFileSync(join(projectRoot, "scripts", "install-cli.sh"), "utf8"),
  );
  // Source maps are only for this machine's logs.
  writeFileSync(join(directory, ".assetsignore"), "*.map\n");
  return { agent, responder };
}

const withoutSchemas = (of: Record<string, Operation>) =>
  Object.fromEntries(
    Object.entries(of).map(([id, { query, body, ...rest }]) => {
      const { method, path, at, summary, optionalBody, file, download, streams } = rest;
      const names = Object.keys(query?.shape ?? {}).map((name) => [name, {}]);
      return [
        id,
        {
          method,
          path,
          at,
          summary,
          optionalBody,
          file,
          download,
          streams,
          body: body && {},
          query: query && { shape: Object.fromEntries(names) as object },
        },
      ];
    }),
  );

/** What the client uses of the operations, without their schemas: to build those takes longer than most commands. */
async function operationsAlone(): Promise<string> {
  const [{ operations }, { entryOperations }] = await Promise.all([
    import("../../protocol/api/operations.ts"),
    import("../../protocol/api/entry-operations.ts"),
  ]);
  return `export const operations = ${JSON.stringify(withoutSchemas(operations))};
    export const entryOperations = ${JSON.stringify(withoutSchemas(entryOperations))};`;
}

/**
 * Builds the command line program as one file that Node 20.13 and later runs. What a command imports when it runs is
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
    plugins: [
      {
        name: "operations-without-schemas",
        setup(bundler) {
          bundler.onLoad({ filter: /protocol\/api\/(?:entry-)?operations\.ts$/ }, async () => ({
            contents: await operationsAlone(),
          }));
        },
      },
    ],
    banner: {
      js: '#!/usr/bin/env node\nimport { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);',
    },
  });
  chmodSync(outfile, 0o755);
}

/** What hosts run. Node keeps the source in memory, and twice as much of it if there is a character beyond Latin-1. */
const forHosts = {
  bundle: true,
  platform: "node",
  target: "node22",
  minifyWhitespace: true,
  logLevel: "error",
} satisfies BuildOptions;

/**
 * Bundles a Node program into one file. Without ssh2, which dockerode uses for remote engines and an agent never
 * needs.
 */
export async function bundleNode(entry: string, outfile: string): Promise<void> {
  await build({
    ...forHosts,
    entryPoints: [join(projectRoot, entry)],
    outfile,
    format: "esm",
    lineLimit: 120,
    sourcemap: "linked",
    banner: {
      js: 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url); const __filename = import.meta.filename; const __dirname = import.meta.dirname;',
    },
    plugins: [withoutUnused, requiredBuiltins, readerAsText],
  });
  const [character] = /[\u0100-\uffff]/.exec(readFileSync(outfile, "utf8")) ?? [];
  if (character !== undefined)
    throw new Error(
      `${outfile} would take twice its memory for ${character}: write it as an escape in a regular expression or String.raw`,
    );
}

/** Docker over SSH, and builds by dockerode itself: the agent has its own (`agent/docker/buildkit.ts`), loaded by the first build. */
const withoutUnused: Plugin = {
  name: "without-unused",
  setup(bundler) {
    bundler.onResolve({ filter: /^(?:ssh2|\.\/session|\.\/buildkit)$/ }, ({ path, importer }) =>
      path === "ssh2" || importer.includes("/dockerode/") ? { path, namespace: "unused" } : undefined,
    );
    bundler.onLoad({ filter: /.*/, namespace: "unused" }, () => ({ contents: "module.exports = {};" }));
  },
};

/**
 * Hosts receive a single file. The program of the agent's readers is a text in it: each would read the whole file
 * otherwise, which takes longer than what most are there for.
 */
const readerAsText: Plugin = {
  name: "reader-as-text",
  setup(bundler) {
    bundler.onLoad({ filter: /\/image-build\/reader-code\.ts$/ }, async ({ path }) => {
      const { outputFiles } = await build({
        ...forHosts,
        entryPoints: [join(dirname(path), "reader.ts")],
        write: false,
        format: "cjs",
      });
      return { contents: `export const readerCode = () => ${JSON.stringify(outputFiles[0]?.text)};` };
    });
  },
};

/** Node takes all exports of a module that is imported, and some of these are large: a WebSocket, Web Crypto, all root certificates. */
const requiredBuiltins: Plugin = {
  name: "required-builtins",
  setup(bundler) {
    bundler.onResolve({ filter: /^node:(?:crypto|https?|tls)$/ }, ({ path, kind }) =>
      kind === "import-statement" ? { path, namespace: "required" } : undefined,
    );
    bundler.onLoad({ filter: /.*/, namespace: "required" }, ({ path }) => ({
      contents: `module.exports = require("${path}");`,
    }));
  },
};
