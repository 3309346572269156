import { JobError } from "../../host.ts";
import { procfileWeb, textOf, type Overrides, type Sources } from "./sources.ts";

export type PhpPlan = {
  kind: "php";
  /** composer.json requires packages or sets up autoloading. */
  composer: boolean;
  locked: boolean;
  /** The folder that is served, seen from the app's. */
  documentRoot: "public" | ".";
  buildCommand: string | null;
  startCommand: string;
};

export function detectPhp(sources: Sources, overrides: Overrides): PhpPlan | null {
  const { files } = sources;
  const pages = ["public/index.php", "index.php"].filter((file) => files.has(file));
  if (pages.length === 0 && !files.has("composer.json")) return null;
  const given = overrides.startCommand ?? procfileWeb(sources);
  if (pages.length === 0 && given === null)
    throw new JobError(
      "Found composer.json, but neither public/index.php nor index.php: add one, or set startCommand.",
    );
  const documentRoot = pages[0] === "public/index.php" ? "public" : ".";
  return {
    kind: "php",
    composer: usesComposer(textOf(sources, "composer.json")),
    locked: files.has("composer.lock"),
    documentRoot,
    buildCommand: overrides.buildCommand,
    startCommand: given ?? `php -S 0.0.0.0:$PORT -t ${documentRoot}`,
  };
}

/** PHP itself and its extensions are no packages. */
function usesComposer(text: string): boolean {
  if (text === "") return false;
  const { require = {}, autoload } = readComposerJson(text);
  return autoload !== undefined || Object.keys(require).some((name) => !/^(?:php|ext-.*|lib-.*)$/.test(name));
}

function readComposerJson(text: string): { require?: object; autoload?: unknown } {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // Said below.
  }
  throw new JobError("composer.json is not valid JSON: mend it and deploy again.");
}
