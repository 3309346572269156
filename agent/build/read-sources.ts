import { open, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Sources } from "./detect/sources.ts";

const mostFiles = 5000;
const mostTexts = 200;
const mostBytes = 512 * 1024;
const deepest = 3;
const passedOver = /(?:^|\/)(?:node_modules|\.git|\.venv|venv)\/$|^vendor\/[^/]+\/$/;

/** The files whose text detection reads. */
const read = new RegExp(
  `^(?:${[
    "package\\.json",
    "yarn\\.lock",
    "pnpm-lock\\.yaml",
    "\\.yarnrc\\.yml",
    "Procfile",
    "\\.(?:nvmrc|node-version|python-version|ruby-version)",
    "runtime\\.txt",
    "requirements\\.txt",
    "pyproject\\.toml",
    "Pipfile",
    "go\\.mod",
    "composer\\.json",
    "Gemfile(?:\\.lock)?",
    "[\\w.-]+\\.config\\.[cm]?[jt]s",
    "\\.eleventy\\.js",
    "[\\w.-]+\\.go",
    "cmd/[\\w.-]+/[\\w.-]+\\.go",
    "(?:\\w+/)?\\w+\\.py",
  ].join("|")})$`,
);

/** Names and texts of a fetched repository, as far as detection looks, without following links out of it. */
export async function readSources(root: string): Promise<Sources> {
  const files = await listFiles(root);
  const wanted = [...files].filter((file) => read.test(file)).slice(0, mostTexts);
  const texts = await Promise.all(
    wanted.map(async (file) => [file, await readStart(join(root, file))] as const),
  );
  return { files: new Set(files), texts: new Map(texts) };
}

/** Regular files, and folders with a slash at the end, those near the root first. */
async function listFiles(root: string): Promise<string[]> {
  const files: string[] = [];
  let folders = [""];
  for (let depth = 0; depth < deepest && files.length < mostFiles; depth++) {
    const found = await Promise.all(folders.map((folder) => listFolder(root, folder)));
    files.push(...found.flat());
    folders = found.flat().filter((name) => name.endsWith("/") && !passedOver.test(name));
  }
  return files.slice(0, mostFiles);
}

async function listFolder(root: string, folder: string): Promise<string[]> {
  const entries = await readdir(join(root, folder), { withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() || entry.isDirectory())
    .map((entry) => `${folder}${entry.name}${entry.isDirectory() ? "/" : ""}`);
}

async function readStart(path: string): Promise<string> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(mostBytes), 0, mostBytes, 0);
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}
