import { logError } from "./log-error.ts";

/** Does the work for each row, so many at once; one for which it fails is logged, and holds up none of the others. */
export async function eachAlone<T extends { id: string }>(
  task: string,
  rows: readonly T[],
  work: (row: T) => Promise<unknown>,
  atOnce = 1,
): Promise<void> {
  const logged = (row: T) => work(row).catch((error: unknown) => logError({ task, id: row.id }, error));
  for (let from = 0; from < rows.length; from += atOnce)
    await Promise.all(rows.slice(from, from + atOnce).map(logged));
}
