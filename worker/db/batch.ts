import type { SQL } from "drizzle-orm";
import type { BatchItem } from "drizzle-orm/batch";
import type { Ctx, Db } from "../ctx.ts";

type Statement = BatchItem<"sqlite">;
type Entry = Statement | readonly Statement[] | Statements | undefined;
/** Statements by name: one, a list, a part with names of its own, or none. */
export type Statements = { readonly [name: string]: Entry };

type AnswerOf<Of> = Of extends Statement
  ? Of["_"]["result"]
  : Of extends readonly unknown[]
    ? { -readonly [Index in keyof Of]: AnswerOf<Of[Index]> }
    : Of extends Statements
      ? Answers<Of>
      : undefined;
/** What the statements answer, under the same names. */
export type Answers<Of extends Statements> = { -readonly [Name in keyof Of]: AnswerOf<Of[Name]> };

/** Runs the statements in the order of their names, in one transaction, and answers by name. */
export async function batch<const Of extends Statements>(
  ctx: Pick<Ctx, "db">,
  named: Of,
): Promise<Answers<Of>> {
  const [first, ...others] = statementsOf(named);
  if (!first) throw new Error("A batch without statements");
  const answers: unknown[] = await ctx.db.batch([first, ...others]);
  return answersOf(named, answers.values()) as Answers<Of>;
}

const isPart = (entry: Entry): entry is Statements =>
  entry !== undefined && Object.getPrototypeOf(entry) === Object.prototype;

function statementsOf(entry: Entry): Statement[] {
  if (entry === undefined) return [];
  if (Array.isArray(entry)) return [...(entry as readonly Statement[])];
  return isPart(entry) ? Object.values(entry).flatMap(statementsOf) : [entry as Statement];
}

function answersOf(entry: Entry, answers: Iterator<unknown>): unknown {
  if (entry === undefined) return undefined;
  if (Array.isArray(entry)) return entry.map(() => answers.next().value);
  if (!isPart(entry)) return answers.next().value;
  return Object.fromEntries(Object.entries(entry).map(([name, one]) => [name, answersOf(one, answers)]));
}

type Written = Record<string, SQL | ((db: Db) => unknown)>;
export type Hot<Of extends Written> = {
  [Name in keyof Of]: Of[Name] extends (db: Db) => infer Query
    ? Extract<Query, Statement>
    : ReturnType<Db["run"]>;
};

/** Statements that are written once per isolate, with the values of their placeholders. */
export const hot = <Of extends Written>(
  ctx: Pick<Ctx, "hot">,
  named: Of,
  values: Record<string, unknown>,
): Hot<Of> =>
  Object.fromEntries(
    Object.entries(named).map(([name, query]) => [name, ctx.hot(query as SQL, values)]),
  ) as unknown as Hot<Of>;
