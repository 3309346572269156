import { JobError } from "../../job.ts";
import type { SourceInspection } from "../../../protocol/api/sources.ts";
import { maxFolder, maxRootDirs } from "../../../protocol/inspection-limits.ts";
import { detect } from "../detect/index.ts";
import { isServedAsFiles, type Plan } from "../detect/plan.ts";
import { appFolders } from "../detect/not-found.ts";
import { serverNotes } from "../detect/workspace-apps.ts";
import { notesBesideDockerfile, notesOf, procfileRelease, textOf, type Sources } from "../detect/sources.ts";
import { tools } from "../dockerfile/node.ts";
import { parseInstructions } from "../../../protocol/dockerfile.ts";
import { databasesOf, lackingDatabase } from "./databases.ts";
import { frameworkOf } from "./frameworks.ts";
import { namesIn } from "./variables.ts";

export type Described = Omit<
  SourceInspection,
  "reachable" | "commit" | "branch" | "defaultBranch" | "branches"
>;

/** Files whose text is no part of what detection looks at. */
type Extra = { dockerfile: string | null; examples: string[]; prisma: string | null };

const usualPort = 3000;

/** What the site's owner may want to know of a repository before anything is paid. */
export function describe(sources: Sources, { dockerfile, examples, prisma }: Extra): Described {
  const texts = [...examples, ...(prisma === null ? [] : [prisma])];
  const found = {
    rootDirs: rootDirsOf([...sources.files]),
    variables: namesIn(examples),
    databases: databasesOf(sources, texts),
    framework: frameworkOf(sources, null),
    notes: [
      ...(dockerfile === null ? notesOf(sources) : notesBesideDockerfile(sources.files)),
      ...lackingDatabase(sources, texts),
    ],
  };
  if (dockerfile !== null)
    return { ...unknown, ...found, builder: "dockerfile", port: exposedBy(dockerfile) ?? usualPort };
  try {
    const plan = detect(sources, { buildCommand: null, startCommand: null });
    // A page below an app is a part of it, such as its template.
    const rootDirs = rootDirsOf([...sources.files].filter((path) => !path.endsWith("/index.html")));
    const notes = [...found.notes, ...serverNotes(plan)];
    const releaseCommand = procfileRelease(sources);
    const framework = frameworkOf(sources, plan.kind);
    return { ...unknown, ...found, framework, notes, rootDirs, ...ofPlan(plan), releaseCommand };
  } catch (error) {
    if (!(error instanceof JobError)) throw error;
    // It has the notes as well.
    const notes = found.notes.filter((note) => !error.message.includes(note));
    return { ...unknown, ...found, notes, language: languageOf(sources), problem: error.message };
  }
}

const rootDirsOf = (paths: readonly string[]): string[] =>
  appFolders(paths)
    .filter((folder) => folder.length <= maxFolder)
    .slice(0, maxRootDirs);

const unknown: Omit<Described, "rootDirs" | "variables" | "databases" | "framework" | "notes"> = {
  builder: null,
  language: null,
  languageVersion: null,
  packageManager: null,
  isStatic: false,
  installCommand: null,
  buildCommand: null,
  startCommand: null,
  releaseCommand: null,
  port: null,
  problem: null,
};

const languages: Record<string, string> = {
  node: "Node.js",
  site: "Node.js",
  python: "Python",
  go: "Go",
  ruby: "Ruby",
  php: "PHP",
  java: "Java",
  rust: "Rust",
  deno: "Deno",
  dotnet: ".NET",
  elixir: "Elixir",
  script: "Shell",
};

const textIn = (value: unknown): string | null => (typeof value === "string" ? value : null);

/** Of a plan of any kind: what detection will learn to build has these fields, too. */
function ofPlan(plan: Plan): Partial<Described> {
  const some = plan as Partial<Record<"version" | "buildCommand" | "startCommand", unknown>>;
  const startCommand = textIn(some.startCommand);
  return {
    builder: "detected",
    language: languages[plan.kind] ?? (plan.kind === "static" ? "HTML" : plan.kind),
    languageVersion: "major" in plan ? String(plan.major) : textIn(some.version),
    buildCommand: textIn(some.buildCommand),
    startCommand,
    isStatic: isServedAsFiles(plan),
    port: portOf(startCommand ?? "") ?? usualPort,
    ...installOf(plan),
  };
}

const ofPython = {
  uv: "uv sync",
  poetry: "poetry install",
  pipenv: "pipenv sync",
  pyproject: "pip install .",
  setup: "pip install .",
} as const;

const noInstall = { packageManager: null, installCommand: null };

function installOf(plan: Plan): Pick<Described, "installCommand" | "packageManager"> {
  switch (plan.kind) {
    case "node":
    case "site": {
      const { packageManager, release, locked, hasDependencies } = plan;
      const tool = tools[packageManager];
      return {
        packageManager: release ?? (packageManager === "berry" ? "yarn" : packageManager),
        installCommand: hasDependencies ? (locked ? tool.locked : tool.loose) : null,
      };
    }
    case "python":
      return {
        packageManager: plan.installer === "pyproject" || plan.installer === "setup" ? "pip" : plan.installer,
        installCommand:
          plan.installer === "pip"
            ? `pip install -r ${plan.manifests[0]}`
            : plan.installer && ofPython[plan.installer],
      };
    case "go":
      return { packageManager: null, installCommand: plan.vendored ? null : "go mod download" };
    case "ruby":
      return { packageManager: "bundler", installCommand: plan.hasGems ? "bundle install" : null };
    case "php":
      return {
        packageManager: plan.composer === null ? null : "composer",
        installCommand: plan.composer === "install" ? "composer install" : null,
      };
    case "java":
      return { packageManager: plan.tool, installCommand: null };
    case "dotnet":
      return { packageManager: "nuget", installCommand: "dotnet restore" };
    case "rust":
      return { packageManager: "cargo", installCommand: null };
    case "elixir":
      return { packageManager: "mix", installCommand: plan.hasPackages ? "mix deps.get" : null };
    case "deno":
      return { packageManager: "deno", installCommand: plan.installs ? "deno install" : null };
    case "script":
      return { packageManager: null, installCommand: plan.installCommand ?? null };
    case "static":
      return noInstall;
    default:
      plan satisfies never;
      return noInstall;
  }
}

/** Where nothing tells how it is started: what it is made with, by its manifest. */
const manifests: [file: string, language: string][] = [
  ["package.json", "Node.js"],
  ["requirements.txt", "Python"],
  ["pyproject.toml", "Python"],
  ["go.mod", "Go"],
  ["Gemfile", "Ruby"],
  ["composer.json", "PHP"],
  ["Cargo.toml", "Rust"],
  ["pom.xml", "Java"],
  ["build.gradle", "Java"],
  ["build.gradle.kts", "Java"],
  ["mix.exs", "Elixir"],
  ["deno.json", "Deno"],
];

const languageOf = (sources: Sources): string | null =>
  manifests.find(([file]) => sources.files.has(file) || textOf(sources, file) !== "")?.[1] ?? null;

const asPort = (text: string | undefined): number | null => {
  const port = Number(text ?? "0");
  return Number.isInteger(port) && port > 0 && port < 65_536 ? port : null;
};

/** The first one of TCP that the image of a Dockerfile's last stage, or a stage that it is made from, exposes as a number. */
function exposedBy(dockerfile: string): number | null {
  const ports = new Map<string, number | null>();
  let [stage, port]: [string, number | null] = ["", null];
  for (const { keyword, text } of parseInstructions(dockerfile).instructions) {
    if (keyword === "FROM") {
      const [, from = "", name = ""] = /^\s*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?/i.exec(text) ?? [];
      stage = name.toLowerCase();
      port = ports.get(from.toLowerCase()) ?? null;
    }
    if (keyword === "EXPOSE") port ??= asPort(/\s"?(\d{1,5})(?!\d|\/udp)/i.exec(text)?.[1]);
    ports.set(stage, port);
  }
  return port;
}

/** One that a start command names, and not by the variable PORT. */
const portOf = (command: string): number | null =>
  asPort(/(?:--port[ =]|-p |\b(?:0\.0\.0\.0|\[::\]):|\bPORT=)(\d{2,5})\b/.exec(command)?.[1]);
