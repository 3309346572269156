import { build, type BuildOptions } from "esbuild";
import { globSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import type { Plugin } from "vitest/config";
import { forWorkerd } from "../../scripts/lib/bundle.ts";

/** workerd loads it by this name, where vitest would send it two thousand modules, one by one. */
export const bundleName = "bundled-worker.mjs";

type Bundle = { file: string; modules: ReadonlySet<string> };

const bundleOf = (root: string, modules: string[]) =>
  ({
    stdin: {
      contents: `export const modules = {${modules.map((name) => `"${name}": () => import("${name}"),`).join("\n")}};`,
      resolveDir: root,
    },
    ...forWorkerd,
    keepNames: true,
  }) satisfies BuildOptions;

/** The Worker and the packages that it imports as one file, which stack traces of the Worker name. A module is evaluated when it is first imported. */
async function bundle(root: string): Promise<Bundle> {
  const folder = mkdtempSync(join(tmpdir(), "berth-worker-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, bundleName);
  const own = globSync("{worker,protocol}/**/*.{ts,tsx}", { cwd: root }).map((path) => `./${path}`);
  const { metafile } = await build({
    ...bundleOf(root, own),
    packages: "external",
    write: false,
    metafile: true,
  });
  const packages = Object.values(metafile.outputs)
    .flatMap(({ imports }) => imports.map(({ path }) => path))
    .filter((path) => !path.includes(":"));
  const modules = new Set([...own, ...packages]);
  await build({ ...bundleOf(root, [...modules]), outfile: file });
  return { file, modules };
}

/** Whoever imports a module of the Worker, or a package that it imports, receives the one of the bundle. */
export function bundledWorker(): Plugin {
  let root = "";
  let isWatching = false;
  let bundled: Promise<Bundle> | undefined;
  const bundledOnce = () => (bundled ??= bundle(root));
  return {
    name: "bundled-worker",
    enforce: "pre",
    configResolved(config) {
      root = config.root;
    },
    configureVitest({ vitest }) {
      // Modules that change are found by their imports, and stack traces name them.
      isWatching = vitest.config.watch;
    },
    async resolveId(name) {
      if (isWatching || !/^[@a-z]/.test(name) || name.includes(":")) return;
      return (await bundledOnce()).modules.has(name) ? `\0bundled:${name}` : undefined;
    },
    async load(id) {
      if (isWatching) return;
      const { file, modules } = await bundledOnce();
      const name = id.startsWith("\0bundled:") ? id.slice(9) : `./${relative(root, id)}`;
      if (!modules.has(name)) return;
      return `import { modules } from ${JSON.stringify(file)};
const module = await modules[${JSON.stringify(name)}]();
__vite_ssr_exportAll__(module);
export default module.default;`;
    },
  };
}
