import type { Plan } from "../detect/plan.ts";
import { denoDockerfile } from "./deno.ts";
import { dotnetDockerfile } from "./dotnet.ts";
import { elixirDockerfile } from "./elixir.ts";
import { goDockerfile } from "./go.ts";
import { javaDockerfile } from "./java.ts";
import { baseImages, installDebian, type BaseImages, type BuildVariables } from "./instructions.ts";
import { assetsStage, nodeDockerfile } from "./node.ts";
import { phpDockerfile } from "./php.ts";
import { pythonDockerfile } from "./python.ts";
import { rubyDockerfile } from "./ruby.ts";
import { rustDockerfile } from "./rust.ts";
import { scriptDockerfile } from "./script.ts";
import { sharedAt } from "./shared.ts";
import { siteDockerfile, staticDockerfile } from "./static.ts";

/** The Dockerfile for a plan: install cached while the manifests stay, a slim last stage, not run as root. */
export function generateDockerfile(
  plan: Plan,
  variables: BuildVariables,
  images: BaseImages = baseImages,
  notes: readonly string[] = [],
  packages: string[] = [],
): string {
  const assets =
    "assets" in plan && plan.assets !== null && plan.kind !== "php" && plan.kind !== "ruby"
      ? assetsStage(plan.assets, variables, images)
      : [];
  const lines = withPackages([...assets, ...stages(plan, variables, images)], images, packages);
  return [...notes.map((note) => `# ${note}`), ...withoutRepeated(lines), ""].join("\n");
}

/** After what is the same for every site. */
function withPackages(lines: readonly string[], images: BaseImages, packages: string[]): string[] {
  let shared = 0;
  return lines.flatMap((line, at) => {
    shared = isDebian(line, images) ? (sharedAt(lines, at)?.length ?? 0) : shared - 1;
    return shared === 0 ? [line, ...installDebian(packages)] : [line];
  });
}

/** Caddy's and Composer's images are made of Alpine. */
const isDebian = (line: string, { caddy, composer, ...others }: BaseImages): boolean =>
  Object.values(others).some((image) => line.startsWith(`FROM ${image}`)) &&
  ![caddy, composer].some((image) => line.startsWith(`FROM ${image}`));

/** Each stage declares an argument once. */
function withoutRepeated(lines: readonly string[]): string[] {
  const declared = new Set<string>();
  return lines.filter((line) => {
    if (line.startsWith("FROM ")) declared.clear();
    if (!line.startsWith("ARG ")) return true;
    return !declared.has(line) && declared.add(line);
  });
}

function stages(plan: Plan, variables: BuildVariables, images: BaseImages): string[] {
  switch (plan.kind) {
    case "node":
      return nodeDockerfile(plan, variables, images);
    case "script":
      return scriptDockerfile(plan, variables, images);
    case "static":
      return staticDockerfile(plan, images);
    case "site":
      return siteDockerfile(plan, variables, images);
    case "python":
      return pythonDockerfile(plan, variables, images);
    case "go":
      return goDockerfile(plan, variables, images);
    case "php":
      return phpDockerfile(plan, variables, images);
    case "ruby":
      return rubyDockerfile(plan, variables, images);
    case "deno":
      return denoDockerfile(plan, variables, images);
    case "dotnet":
      return dotnetDockerfile(plan, variables, images);
    case "elixir":
      return elixirDockerfile(plan, variables, images);
    case "rust":
      return rustDockerfile(plan, variables, images);
    case "java":
      return javaDockerfile(plan, variables, images);
  }
}
