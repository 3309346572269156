import type { DenoPlan } from "./deno.ts";
import type { DotnetPlan } from "./dotnet.ts";
import type { ElixirPlan } from "./elixir.ts";
import type { GoPlan } from "./go.ts";
import type { JavaPlan } from "./java.ts";
import type { NodeBuild, NodePlan } from "./node.ts";
import type { PhpPlan } from "./php.ts";
import type { PythonPlan } from "./python.ts";
import type { RubyPlan } from "./ruby.ts";
import type { RustPlan } from "./rust.ts";
import type { ScriptPlan } from "./script.ts";
import type { SitePlan, StaticPlan } from "./static.ts";

export type Backend =
  | GoPlan
  | PythonPlan
  | RubyPlan
  | PhpPlan
  | JavaPlan
  | DotnetPlan
  | RustPlan
  | ElixirPlan
  | DenoPlan;
/** Assets are made by a package.json's build script before the app of another language is. */
export type BackendPlan = Backend & { assets: NodeBuild | null };
export type Plan = NodePlan | SitePlan | StaticPlan | ScriptPlan | BackendPlan;

/** Berth's own server serves what the build leaves: no program of the repository runs. */
export function isServedAsFiles(plan: Plan): boolean {
  switch (plan.kind) {
    case "static":
    case "site":
      return true;
    case "dotnet":
      return plan.isWebAssembly;
    case "deno":
    case "python":
    case "ruby":
    case "script":
      return plan.startCommand === null;
    // Without a start command, Java and Rust start what the build leaves.
    case "elixir":
    case "go":
    case "java":
    case "node":
    case "php":
    case "rust":
      return false;
  }
}
