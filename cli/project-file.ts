import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { usage } from "./failure.ts";
import { readText } from "./utf8.ts";

export const projectFileName = "berth.json";

/** The nearest berth.json, from the working directory up to the root of the checkout. */
export function findProjectFile(): string | undefined {
  for (let folder = process.cwd(); ; folder = dirname(folder)) {
    const file = join(folder, projectFileName);
    if (existsSync(file)) return file;
    if (existsSync(join(folder, ".git")) || dirname(folder) === folder) return undefined;
  }
}

/** @throws Failure (usage) if it cannot be read, or is not JSON in UTF-8 */
export function readProjectFile(file: string): unknown {
  const text = readText(file);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw usage(`${file} is not valid JSON: ${(error as Error).message}`);
  }
}

/** The name of the site in the nearest berth.json. */
export function projectName(): string | undefined {
  const file = findProjectFile();
  if (file === undefined) return undefined;
  const content = readProjectFile(file) as { name?: unknown } | null;
  return typeof content?.name === "string" ? content.name : undefined;
}
