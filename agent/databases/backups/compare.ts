import type { Fingerprint } from "../../../protocol/agent/backups.ts";

/**
 * The difference between a restored copy and the original, in one sentence; null if there is none.
 * @param except kinds of objects that may differ
 */
export function difference(wanted: Fingerprint, found: Fingerprint, except: string[] = []): string | null {
  const foundTables = new Map(found.tables.map((table) => [table.name, table]));
  for (const { name, rows, checksum } of wanted.tables) {
    const table = foundTables.get(name);
    if (!table) return `The table ${name} is missing.`;
    if (table.rows !== rows) return `The table ${name} has ${table.rows} rows instead of ${rows}.`;
    if (table.checksum !== checksum)
      return `The contents of the table ${name} differ from what was backed up.`;
  }
  const wantedNames = new Set(wanted.tables.map(({ name }) => name));
  const added = found.tables.find(({ name }) => !wantedNames.has(name));
  if (added) return `The table ${added.name} was not backed up.`;
  for (const kind of new Set([...Object.keys(wanted.objects), ...Object.keys(found.objects)])) {
    if (except.includes(kind)) continue;
    const [had, has] = [wanted.objects[kind] ?? "0", found.objects[kind] ?? "0"];
    if (had !== has) return `There are ${has} ${kind} instead of ${had}.`;
  }
  for (const { name, value } of wanted.settings ?? [])
    if (!found.settings?.some((setting) => setting.name === name && setting.value === value))
      return `The database's setting ${name} differs.`;
  for (const extension of wanted.extensions ?? [])
    if (!found.extensions?.includes(extension)) return `The extension ${extension} is missing.`;
  const foundCounters = new Map(found.counters.map((counter) => [counter.name, counter]));
  for (const { name, from, to } of wanted.counters) {
    const value = foundCounters.get(name)?.from;
    if (value === undefined) return `The sequence ${name} is missing.`;
    const [low, high] = BigInt(from) < BigInt(to) ? [from, to] : [to, from];
    if (BigInt(value) < BigInt(low) || BigInt(value) > BigInt(high))
      return `The sequence ${name} is at ${value}, which it never was during the backup.`;
  }
  return null;
}
