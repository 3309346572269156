import { buildSettings, runSettings, type BuildSettings, type RunSettings } from "../../db/schema.ts";

type Kept = { run: RunSettings | null; build: BuildSettings | null };

/** The settings that differ between two versions. `unknown`: those that one of the two no longer has. */
export function settingsChanges(before: Kept, after: Kept) {
  const earlier: Partial<Record<string, unknown>> = { ...before.run, ...before.build };
  const later: Partial<Record<string, unknown>> = { ...after.run, ...after.build };
  const names = [...runSettings, ...buildSettings];
  const known = names.filter((name) => name in earlier && name in later);
  return {
    differing: known
      .filter((name) => JSON.stringify(earlier[name]) !== JSON.stringify(later[name]))
      .map((setting) => ({ setting, earlier: earlier[setting] ?? null, later: later[setting] ?? null })),
    unknown: names.filter((name) => !known.includes(name)),
  };
}
