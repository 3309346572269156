import { JobError } from "../host.ts";

/** The files detection looks at: names at the root of the app, and the text of package.json when there is one. */
export type Sources = { files: ReadonlySet<string>; packageJson: string | null };
export type Overrides = { buildCommand: string | null; startCommand: string | null };

export type PackageManager = "npm" | "pnpm" | "yarn";
export type Plan =
  | {
      kind: "node";
      packageManager: PackageManager;
      /** Manifest files copied before the install, so that it is cached while they stay the same. */
      manifests: string[];
      locked: boolean;
      hasDependencies: boolean;
      hasDevDependencies: boolean;
      buildCommand: string | null;
      startCommand: string;
    }
  | { kind: "static"; buildCommand: null };

type PackageJson = {
  main?: unknown;
  scripts?: Record<string, unknown>;
  dependencies?: object;
  devDependencies?: object;
  packageManager?: unknown;
};

const nothingFound =
  "Found neither a Dockerfile, nor a package.json, nor an index.html: add one of them, or set rootDir to the folder that holds it.";

/** What the repository is and how it is built and started. @throws JobError when it cannot be told */
export function detect({ files, packageJson }: Sources, overrides: Overrides): Plan {
  if (packageJson !== null) return detectNode(files, readPackageJson(packageJson), overrides);
  if (files.has("index.html")) return { kind: "static", buildCommand: null };
  throw new JobError(nothingFound);
}

function readPackageJson(text: string): PackageJson {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Said below.
  }
  throw new JobError("package.json is not valid JSON: mend it and deploy again.");
}

const lockFiles: Record<PackageManager, string[]> = {
  npm: ["package-lock.json", "npm-shrinkwrap.json"],
  pnpm: ["pnpm-lock.yaml"],
  yarn: ["yarn.lock"],
};

function detectNode(files: ReadonlySet<string>, manifest: PackageJson, overrides: Overrides): Plan {
  const named =
    typeof manifest.packageManager === "string" ? manifest.packageManager.split("@")[0] : undefined;
  const managers: PackageManager[] = ["pnpm", "yarn", "npm"];
  const packageManager =
    managers.find((manager) => lockFiles[manager].some((file) => files.has(file))) ??
    managers.find((manager) => manager === named) ??
    "npm";
  const locks = lockFiles[packageManager].filter((file) => files.has(file));
  const script = (name: string) => typeof manifest.scripts?.[name] === "string";
  const main =
    typeof manifest.main === "string" && /^[\w./-]+$/.test(manifest.main) ? manifest.main : undefined;
  const entry = main ?? ["server.js", "index.js", "app.js", "src/index.js"].find((file) => files.has(file));
  const startCommand =
    overrides.startCommand ??
    (script("start") ? `${packageManager} start` : entry ? `node ${entry}` : undefined);
  if (startCommand === undefined)
    throw new JobError(
      'package.json has neither a "start" script nor a "main" file: add one, or set startCommand.',
    );
  return {
    kind: "node",
    packageManager,
    manifests: [
      "package.json",
      ...locks,
      ...[".npmrc", "pnpm-workspace.yaml", ".yarnrc.yml"].filter((file) => files.has(file)),
    ],
    locked: locks.length > 0,
    hasDependencies: [manifest.dependencies, manifest.devDependencies].some(isFilled),
    hasDevDependencies: isFilled(manifest.devDependencies),
    buildCommand: overrides.buildCommand ?? (script("build") ? `${packageManager} run build` : null),
    startCommand,
  };
}

const isFilled = (list: object | undefined): boolean => Object.keys(list ?? {}).length > 0;
