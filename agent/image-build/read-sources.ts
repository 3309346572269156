import { open, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Sources } from "./detect/sources.ts";

const mostFolders = 500;
const mostBelow = 5000;
const mostOfAKind = 200;
const manifestBytes = 900 * 1024;
const codeBytes = 64 * 1024;
export const deepest = 3;
const passedOver = /(?:^|\/)(?:node_modules|\.git|\.venv|venv)\/$|^vendor\/[^/]+\/$/;

/** The files whose text detection reads. */
const manifest = new RegExp(
  `^(?:${[
    "(?:app|package)\\.json",
    "yarn\\.lock",
    "package-lock\\.json",
    "pnpm-lock\\.yaml",
    "bun\\.lock",
    "pnpm-workspace\\.yaml",
    "\\.yarnrc\\.yml",
    "\\.npmrc",
    "Procfile",
    "Aptfile",
    "\\.(?:nvmrc|node-version|bun-version|python-version|ruby-version)",
    "runtime\\.txt",
    "\\.tool-versions",
    "\\.?mise\\.toml",
    "requirements\\.txt",
    "pyproject\\.toml",
    "setup\\.cfg",
    "config\\.toml",
    "Pipfile",
    "go\\.(?:mod|work)",
    "composer\\.(?:json|lock)",
    "Gemfile(?:\\.lock)?",
    "(?:astro|next|nuxt|prisma|react-router|svelte|vite|vue|eleventy|waku)\\.config\\.[cm]?[jt]s",
    "\\.eleventy\\.js",
    "manage\\.py",
    "Staticfile",
    "wrangler\\.(?:toml|jsonc?)",
    "(?:[\\w.@+-]+/){0,2}_(?:redirects|headers)",
    "Cargo\\.(?:toml|lock)",
    "mix\\.exs",
    "elixir_buildpack\\.config",
    "deno\\.jsonc?",
    "\\.(?:deno-version|dvmrc)",
    "global\\.json",
    "Directory\\.(?:Build|Packages)\\.(?:props|targets)",
    "pom\\.xml",
    "(?:build|settings)\\.gradle(?:\\.kts)?",
    "gradle/(?:libs\\.versions\\.toml|wrapper/gradle-wrapper\\.properties)",
    "system\\.properties",
    "\\.java-version",
    "\\.sdkmanrc",
  ].join("|")})$`,
);
/** Those of a workspace's packages, of modules, and what requirements.txt includes. */
const packageManifest =
  /^(?:(?:[\w@.-]+\/){1,2}(?:(?:package|project)\.json|(?:next|svelte)\.config\.[cm]?[jt]s)|requirements\/[\w.-]+\.txt|(?!requirements\.txt$)[\w.-]*(?:requirements|constraints)[\w.-]*\.txt)$/;
const moduleManifest =
  /^(?:[\w.-]+\/){1,2}(?:pom\.xml|build\.gradle(?:\.kts)?)$|^(?:[\w.@+-]+\/){0,2}[\w.@+-]+\.(?:cs|fs|vb)proj$/;
const code =
  /^(?:[\w.-]+\.go|cmd\/(?:[\w.-]+\/)?[\w.-]+\.go|(?:[\w.-]+\/){1,2}main\.go|(?:src\/)?(?:main|server|index|app|mod)\.(?:tsx?|js)|(?!manage\.py$)(?:src\/)?(?:\w+\/)?[\w-]+\.py)$/;

/** Whether detection may read the text of a file by this path below the root of an app. */
export const isRead = (path: string): boolean =>
  [manifest, packageManifest, moduleManifest, code].some((sign) => sign.test(path));

/** Names and texts of a fetched repository, as far as detection looks, without following links out of it. */
export async function readSources(root: string): Promise<Sources> {
  const files = await listFiles(root);
  const read = (bytes: number) => async (file: string) =>
    [file, await readStart(join(root, file), bytes)] as const;
  const some = (sign: RegExp, bytes: number) =>
    files
      .filter((file) => sign.test(file))
      .slice(0, mostOfAKind)
      .map(read(bytes));
  const texts = await Promise.all([
    ...some(manifest, manifestBytes),
    ...some(packageManifest, codeBytes),
    ...some(moduleManifest, codeBytes),
    ...some(code, codeBytes),
  ]);
  return { files: new Set(files), texts: new Map(texts) };
}

/** Regular files, and folders with a slash at the end: all at the root, and some below it. */
async function listFiles(root: string): Promise<string[]> {
  const files = await listFolder(root, "");
  let found = files;
  for (let depth = 1; depth < deepest; depth++) {
    const folders = found.filter((name) => name.endsWith("/") && !passedOver.test(name));
    const below = await Promise.all(folders.slice(0, mostFolders).map((folder) => listFolder(root, folder)));
    found = below.flat().slice(0, mostBelow);
    files.push(...found);
  }
  return files;
}

async function listFolder(root: string, folder: string): Promise<string[]> {
  const entries = await readdir(join(root, folder), { withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() || entry.isDirectory())
    .map((entry) => `${folder}${entry.name}${entry.isDirectory() ? "/" : ""}`);
}

async function readStart(path: string, bytes: number): Promise<string> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, 0);
    const text = buffer.subarray(0, bytesRead);
    // As PowerShell writes what is sent into a file. A mark at the start is left out.
    const isWide = text[0] === 0xff && text[1] === 0xfe;
    return new TextDecoder(isWide ? "utf-16le" : "utf-8").decode(text);
  } finally {
    await file.close();
  }
}
