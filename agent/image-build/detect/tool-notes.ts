import { toolsOf, type Sources } from "./sources.ts";

const ofNode = ["node", "nodejs", "npm", "pnpm", "yarn", "bun"];
/** What asdf and mise call what an app of a kind is built by. */
const tools: Record<string, string[]> = {
  node: ofNode,
  site: ofNode,
  python: ["python", "uv", "poetry", "pipenv"],
  go: ["go", "golang"],
  java: ["java", "maven", "gradle"],
  dotnet: ["dotnet", "dotnet-core"],
  elixir: ["elixir", "erlang"],
};

/** The tools that the repository names for its development and that are in no image. */
export function toolNotes(
  sources: Sources,
  plan: { kind: string; assets?: object | null; npm?: object | null },
): string[] {
  const own = new Set([...(tools[plan.kind] ?? [plan.kind]), ...((plan.assets ?? plan.npm) ? ofNode : [])]);
  const others = toolsOf(sources).filter(({ tool }) => !own.has(tool));
  if (others.length === 0) return [];
  const files = [...new Set(others.map(({ file }) => file))];
  const names = [...new Set(others.map(({ tool }) => tool))].filter((name) => /^[\w.:@/-]{1,60}$/.test(name));
  return [
    `${listed(files)} also ${files.length === 1 ? "names" : "name"} ${listed(names.slice(0, mostNamed))}, which Berth does not install: only the tools of the app's own language. Add a Dockerfile if it needs them.`,
  ];
}

const mostNamed = 10;
const listed = (names: readonly string[]): string =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
