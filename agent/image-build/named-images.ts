import { parseInstructions, wordsOf } from "../../protocol/dockerfile.ts";

/** More than anybody builds from; each is looked up on the host. */
const most = 50;
/** Not by a digest, which is always the same image. */
const reference = /^[a-z0-9][\w./:-]*$/;
const variable = /\$(?:(\w+)|\{(\w+)\})/g;

/** The images that a Dockerfile's stages begin with, by names that may lead to other ones later. */
export function namedImages(dockerfile: string, buildArgs: Record<string, string>): string[] {
  const args = new Map<string, string>();
  const stages = new Set(["scratch"]);
  const images = new Set<string>();
  let isBeforeStages = true;
  for (const { keyword, text } of parseInstructions(dockerfile).instructions) {
    const words = wordsOf(text);
    if (keyword === "ARG" && isBeforeStages)
      for (const [, name = "", value = ""] of words.map(
        (word) => /^(\w+)(?:=["']?([^"']*))?/.exec(word) ?? [],
      ))
        args.set(name, buildArgs[name] ?? value);
    if (keyword !== "FROM") continue;
    isBeforeStages = false;
    const [from = "", as, stage = ""] = words.filter((word) => !word.startsWith("--"));
    const image = from.replace(
      variable,
      (_, name: string | undefined, braced: string | undefined) => args.get(name ?? braced ?? "") ?? "",
    );
    if (reference.test(image) && !stages.has(image)) images.add(image);
    if (as !== undefined) stages.add(stage.toLowerCase());
  }
  return [...images].slice(0, most);
}
