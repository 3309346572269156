import { readPackageJson, scriptOf } from "./package-json.ts";
import { programOf } from "./package-manager.ts";
import type { Plan } from "./plan.ts";
import type { Sources } from "./sources.ts";

/** The build, then what it is run for: `npm run build && node dist`. */
const buildsFirst = /^(?:(?:npm|pnpm|yarn|bun) (?:run )?(build(?::[\w-]+)?)|tsc)(?: [^&|;]*)?&& *(.+)$/s;

const startsByScript = /^(?:npm|pnpm|yarn|bun run) start$/;

/** A script that builds before it starts takes longer at each start, and often more memory than the app has. */
export function startNotes(sources: Sources, plan: Plan): string[] {
  if (plan.kind !== "node" || !startsByScript.test(plan.startCommand)) return [];
  const [, script, rest] = buildsFirst.exec(scriptOf(readPackageJson(sources) ?? {}, "start") ?? "") ?? [];
  if (rest === undefined) return [];
  const command = /^[\w ./:=@-]{1,100}$/.test(rest) ? rest : "what comes after that";
  const isBuilt = plan.buildCommand !== null;
  const build = script === undefined ? "tsc" : `${programOf(plan.packageManager)} run ${script}`;
  return [
    `The start script builds the app each time it starts, in the memory of its pack${isBuilt ? ", though it is built by then" : ""}: set ${isBuilt ? "" : `buildCommand to ${build}, and `}startCommand to ${command}.`,
  ];
}
