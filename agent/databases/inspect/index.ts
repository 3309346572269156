import { mayHaveTakenEffect, type Answer, type ServerQuestion } from "../../../protocol/agent/running.ts";
import {
  maxActiveQueries,
  maxResultBytes,
  type DatabaseSchema,
  type DatabaseTable,
} from "../../../protocol/api/insight.ts";
import type { Engine } from "../../docker/engine.ts";
import { networkName } from "../../docker/specs.ts";
import { containerName } from "../../docker/database-objects.ts";
import { SignInError, StatementError, type Place } from "./place.ts";
import { openReaders } from "../postgresql/query-reader.ts";
import { inspectors } from "../index.ts";
import { label } from "../../docker/labels.ts";

/** Added to the statement's own limit, which the server enforces: time to report it, and for servers that do not. */
const graceMs = 2000;
const ownQuestionsMs = 9000;
const askedOfOneAtOnce = 4;
/** Per account, across its databases, so that others are not blocked. */
const askedByAccountAtOnce = 8;
const askedAtOnce = 24;
const maxErrorCharacters = 1900;

type Means = {
  engine: Pick<Engine, "inspectContainer" | "execute">;
  agentId: string;
  /** Whether the nonce is new; it is remembered until it has expired. */
  useOnce: (nonce: string, expiresAt: string) => boolean;
};
export type Inspection = (question: ServerQuestion, signal: AbortSignal) => Promise<Answer>;

/** SQLSTATE class 28, of PostgreSQL. */
const isSignInRefused = (error: unknown): boolean =>
  /^28...$/.test(String((error as { code?: unknown }).code));

/** PostgreSQL's cannot_connect_now, which comes before any statement. */
const isStartingOrStopping = (error: unknown): boolean => (error as { code?: unknown }).code === "57P03";

const refused = (error: string): Answer => ({ kind: "refused", error });
const statementRefused = (error: string): Answer => ({
  kind: "statementRefused",
  error: error.length > maxErrorCharacters ? `${error.slice(0, maxErrorCharacters)}…` : error,
});

/** Of those of all logins together. */
export const longest = <T extends { durationMs: number }>(queries: readonly T[]): T[] =>
  queries.toSorted((one, other) => other.durationMs - one.durationMs).slice(0, maxActiveQueries);

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

/** Leaves out the tables that do not fit, and the details of one that takes half of the room. */
export function fitting(schema: DatabaseSchema): DatabaseSchema {
  let bytes = bytesOf({ ...schema, tables: [] });
  const tables = schema.tables
    .map((table) => (bytesOf(table) > maxResultBytes / 2 ? withoutDetails(table) : table))
    .filter((table) => {
      const size = bytesOf(table) + 1;
      const fits = bytes + size <= maxResultBytes;
      if (fits) bytes += size;
      return fits;
    });
  const isWhole =
    tables.length === schema.tables.length && tables.every((table, n) => table === schema.tables[n]);
  return { ...schema, tables, truncated: schema.truncated || !isWhole };
}

const withoutDetails = (table: DatabaseTable): DatabaseTable => ({
  ...table,
  columns: table.columns.map((column) => ({ ...column, default: null })),
  foreignKeys: [],
  indexes: [],
});

/** Queries database servers with their owners' rights or less, over the accounts' own networks. */
export function openInspection({ engine, agentId, useOnce }: Means): Inspection {
  const readers = openReaders(engine);
  /** Open questions, by database and by account. */
  const asking = new Map<string, number>();
  let all = 0;
  const askingOf = (id: string) => asking.get(id) ?? 0;
  const count = (id: string, by: 1 | -1) => {
    const left = askingOf(id) + by;
    if (left > 0) asking.set(id, left);
    else asking.delete(id);
  };

  const placeOf = async (
    question: ServerQuestion,
    signal: AbortSignal,
  ): Promise<(Place & { accountId: string }) | null> => {
    const found = await engine.inspectContainer(containerName(question.databaseId));
    if (!found?.running || found.labels[label.agent] !== agentId) return null;
    const accountId = found.labels[label.account] ?? "";
    const address = found.addresses[networkName(accountId)];
    const { databaseId, databaseName, login } = question;
    const reader = () => readers.of(databaseId, databaseName, found.id);
    return address ? { accountId, address, databaseName, login, reader, signal } : null;
  };

  return async (question, asked) => {
    const { databaseId } = question;
    if (all >= askedAtOnce || askingOf(databaseId) >= askedOfOneAtOnce)
      return refused("Too many requests to this database are open: wait for a response first.");
    const limitMs = question.kind === "query" ? question.timeoutMs + graceMs : ownQuestionsMs;
    const late = AbortSignal.timeout(limitMs);
    const counted = [databaseId as string];
    all++;
    count(databaseId, 1);
    try {
      const place = await placeOf(question, AbortSignal.any([asked, late]));
      if (!place)
        return refused("The database's server is not running at the moment: try again in a minute.");
      if (askingOf(place.accountId) >= askedByAccountAtOnce)
        return refused("Too many requests to your databases are open: wait for a response first.");
      counted.push(place.accountId);
      count(place.accountId, 1);
      return await answer(question, place);
    } catch (error) {
      if (error instanceof StatementError) return statementRefused(error.message);
      if (error instanceof SignInError) return refused(error.message);
      if (late.aborted && question.kind === "query")
        return statementRefused(
          `The statement took longer than ${question.timeoutMs / 1000} s, and its connection was closed.`,
        );
      if (isSignInRefused(error)) readers.forget(databaseId);
      if (isStartingOrStopping(error))
        return refused("The database's server is starting or stopping: try again in a minute.");
      // Not the message: a client may quote its input.
      const reason = (error as { code?: string }).code ?? (error as Error).name;
      const next = question.kind === "query" && question.write ? mayHaveTakenEffect : "Try again.";
      return refused(
        `The database's server did not answer (${reason}). ${next} If it ran out of memory, it has been restarted.`,
      );
    } finally {
      all--;
      for (const id of counted) count(id, -1);
    }
  };

  async function answer(question: ServerQuestion, place: Place): Promise<Answer> {
    const inspector = await inspectors[question.type]();
    switch (question.kind) {
      case "insight": {
        const insight = await inspector.insight(place);
        return { kind: "insight", insight: { ...insight, activeQueries: longest(insight.activeQueries) } };
      }
      case "schema": {
        return { kind: "schema", schema: fitting(await inspector.schema(place)) };
      }
      case "query": {
        const { statement, write, dryRun, limit, timeoutMs } = question;
        if (write && !useOnce(write.nonce, write.expiresAt))
          return statementRefused("This confirmation was already used: request another one.");
        const beganAt = performance.now();
        const asked = { statement, write: write !== null, dryRun, limit, timeoutMs };
        const result = await inspector.query(place, asked);
        const durationMs = Math.round(performance.now() - beganAt);
        return { kind: "query", result: { ...result, durationMs } };
      }
      case "endSession":
        return { kind: "endSession", ended: await inspector.endSession(place, question.session) };
      default:
        throw new Error(`Nobody answers ${(question satisfies never as ServerQuestion).kind}`);
    }
  }
}
