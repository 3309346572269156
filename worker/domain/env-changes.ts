import type { EnvEntry } from "../../protocol/agent/jobs.ts";
import type { EnvVersion } from "../../protocol/api/env-history.ts";

/**
 * The differences between two environments by key.
 * @param open the value of a sealed secret: sealing again, such as with a new key, is no change
 */
export function envChanges(
  before: readonly EnvEntry[],
  after: readonly EnvEntry[],
  open: (entry: EnvEntry) => string,
): EnvVersion["changes"] {
  const earlier = new Map(before.map((entry) => [entry.key, entry]));
  const later = new Set(after.map(({ key }) => key));
  const changes: EnvVersion["changes"] = [];
  for (const entry of after) {
    const { key, value, scope, secret } = entry;
    const known = earlier.get(key);
    const isSame =
      known?.scope === scope &&
      known.secret === secret &&
      (known.value === value || (secret && open(known) === open(entry)));
    if (!isSame) changes.push({ key, change: known ? "changed" : "added" });
  }
  for (const { key } of before) if (!later.has(key)) changes.push({ key, change: "removed" });
  return changes;
}
