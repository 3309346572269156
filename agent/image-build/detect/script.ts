import { detectNode, type NodePlan } from "./node.ts";
import { planPython, type PythonPlan } from "./python.ts";
import { procfileWeb, type Overrides, type OwnInstall, type Sources } from "./sources.ts";

/** A repository of no language that is known: its own commands say all. */
export type ScriptPlan = {
  kind: "script";
  /** The shell script that is started, where no command is given. */
  script: string | null;
  buildCommand: string | null;
  /** null: the build makes a folder of files, which is served. */
  startCommand: string | null;
  output: string;
  singlePage?: boolean;
} & OwnInstall;

const script = "start.sh";

/** What has no manifest, and is started by a command or by the name of its file. */
export function detectScript(
  sources: Sources,
  overrides: Overrides,
): NodePlan | PythonPlan | ScriptPlan | null {
  const given = overrides.startCommand ?? procfileWeb(sources);
  const has = (ending: string) =>
    [...sources.files].some((file) => /^[^/]+$/.test(file) && file.endsWith(ending));
  const usual = ["server.js", "index.js", "app.js"].some((file) => sources.files.has(file));
  if (given === null && usual) return detectNode(sources, {}, overrides);
  if (given !== null && has(".py") && !/\bnode\b/.test(given)) return planPython(sources, overrides, given);
  if (given !== null && has(".js")) return detectNode(sources, {}, overrides);
  const { buildCommand } = overrides;
  if (given !== null) return { kind: "script", script: null, buildCommand, startCommand: given, output: "" };
  return sources.files.has(script)
    ? { kind: "script", script, buildCommand, startCommand: `./${script}`, output: "" }
    : null;
}
