import { build } from "esbuild";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { projectRoot } from "./project-root.ts";

/**
 * Builds the pages' files below `public/assets`, each with a hash of its contents in its name, and `manifest.json` with the names.
 * Every program in web/islands is one file.
 */
export async function bundleWeb(directory: string): Promise<void> {
  const outdir = join(directory, "assets");
  rmSync(outdir, { recursive: true, force: true });
  mkdirSync(outdir, { recursive: true });
  const web = join(projectRoot, "web");
  const islands = readdirSync(join(web, "islands")).filter((name) => /^[a-z-]+\.ts$/.test(name));
  const { metafile } = await build({
    entryPoints: [
      join(web, "style.css"),
      join(web, "main.ts"),
      ...readdirSync(web)
        .filter((name) => name.endsWith(".svg"))
        .map((name) => join(web, name)),
      ...islands.map((name) => join(web, "islands", name)),
    ],
    outdir,
    outbase: web,
    entryNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    loader: { ".woff2": "file", ".svg": "copy" },
    bundle: true,
    minify: true,
    format: "esm",
    target: ["es2022", "chrome123", "firefox120", "safari17.5"],
    metafile: true,
    legalComments: "none",
    logLevel: "error",
  });
  const names = Object.entries(metafile.outputs).flatMap(([path, { entryPoint }]) => {
    if (path.endsWith(".woff2"))
      return [[basename(path).replace(/-\w+\.woff2$/, ".woff2"), basename(path)] as const];
    if (entryPoint === undefined) return [];
    return [[basename(entryPoint).replace(/\.ts$/, ".js"), basename(path)] as const];
  });
  writeFileSync(join(outdir, "manifest.json"), JSON.stringify(Object.fromEntries(names)));
  // Cloudflare serves these files itself.
  writeFileSync(
    join(directory, "_headers"),
    "/assets/*\n  Cache-Control: public, max-age=31536000, immutable\n  X-Content-Type-Options: nosniff\n",
  );
}
