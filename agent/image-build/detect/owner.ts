import type { Plan } from "./plan.ts";
import type { Overrides } from "./sources.ts";

/** A plan as the owner's settings change it, whatever was detected. */
export const asOwnerSays = (plan: Plan, { installCommand, singlePage, languageVersion }: Overrides): Plan => {
  const paged = singlePage === undefined ? plan : withSinglePage(plan, singlePage);
  const versioned = languageVersion === undefined ? paged : withVersion(paged, languageVersion);
  return installCommand === undefined ? versioned : withInstall(versioned, installCommand);
};

function withSinglePage(plan: Plan, singlePage: boolean): Plan {
  switch (plan.kind) {
    case "site":
      return { ...plan, singlePage, fallbacks: [] };
    case "static":
    case "deno":
    case "python":
    case "ruby":
    case "script":
      return { ...plan, singlePage };
    case "node":
    case "go":
    case "php":
    case "java":
    case "dotnet":
    case "rust":
    case "elixir":
      return plan;
  }
}

function withVersion(plan: Plan, version: string): Plan {
  const [major = ""] = version.split(".");
  switch (plan.kind) {
    case "node":
    case "site":
      return { ...plan, major: Number(major) };
    case "java":
      return { ...plan, version: major };
    case "dotnet":
      return { ...plan, version: version === major ? `${major}.0` : version, sdk: null };
    case "static":
    case "script":
      return plan;
    case "go":
    case "python":
    case "ruby":
    case "php":
    case "rust":
    case "elixir":
    case "deno":
      return { ...plan, version };
  }
}

/** The owner's command may read any file. */
function withInstall(plan: Plan, installCommand: string): Plan {
  switch (plan.kind) {
    case "static":
      return plan;
    case "node":
    case "site":
      return { ...plan, installCommand, needsSource: true, ownScripts: [], hasDependencies: true };
    case "go":
    case "java":
    case "rust":
    case "script":
      return { ...plan, installCommand };
    case "php":
      return {
        ...plan,
        installCommand,
        needsSource: true,
        composer: plan.composer === null ? null : "install",
      };
    case "python":
    case "ruby":
    case "dotnet":
    case "elixir":
    case "deno":
      return { ...plan, installCommand, needsSource: true };
  }
}
