import type { BatchItem } from "drizzle-orm/batch";
import type { Ctx } from "../ctx.ts";

type Statement = BatchItem<"sqlite">;
/** A statement, several, or none. */
type Entry = Statement | readonly Statement[] | undefined;
export type Statements = Record<string, Entry>;

type AnswerOf<Of> = Of extends Statement
  ? Of["_"]["result"]
  : Of extends readonly Statement[]
    ? { -readonly [Index in keyof Of]: Of[Index] extends Statement ? Of[Index]["_"]["result"] : never }
    : undefined;
export type Answers<Of extends Statements> = { [Name in keyof Of]: AnswerOf<Of[Name]> };

/** Runs the statements in the order of their names, in one transaction, and answers by name. */
export async function batch<const Of extends Statements>(
  ctx: Pick<Ctx, "db">,
  named: Of,
): Promise<Answers<Of>> {
  const all = Object.values(named).flatMap((entry): readonly Statement[] => listOf(entry));
  const [first, ...others] = all;
  if (!first) throw new Error("A batch without statements");
  const answers: unknown[] = await ctx.db.batch([first, ...others]);
  let next = 0;
  return Object.fromEntries(
    Object.entries(named).map(([name, entry]) => {
      const taken = answers.slice(next, (next += listOf(entry).length));
      return [name, Array.isArray(entry) ? taken : taken[0]];
    }),
  ) as Answers<Of>;
}

const listOf = (entry: Entry): readonly Statement[] =>
  entry === undefined ? [] : Array.isArray(entry) ? (entry as readonly Statement[]) : [entry as Statement];
