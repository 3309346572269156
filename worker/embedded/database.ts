import { DurableObject } from "cloudflare:workers";
import type { Answer, EmbeddedDatabaseRpc, Query, Value } from "./bindings.ts";

/** How many times the record has changed; −1 where the object is not in this isolate, so that nothing is remembered. */
let version = -1;
/** By the words of a read, and then by its values: together they would be a long key to make and look up. */
const remembered = new Map<string, Map<string, Answer>>();
let rememberedBytes = 0;
const [mostBytes, mostBytesEach] = [8_000_000, 256_000];

function clear(): void {
  remembered.clear();
  rememberedBytes = 0;
}

/** The record is another one: no answer holds any more. */
function forget(): void {
  version++;
  clear();
}

/** Keeps an answer until the record changes, unless it has changed while the answer was on its way, or the next one is another one anyway. */
function remember(sql: string, values: string, answer: Answer): void {
  if (answer.version !== version || remembered.get(sql)?.has(values) || sql.includes("random()")) return;
  let bytes = 200 + 2 * values.length + (remembered.has(sql) ? 0 : 2 * sql.length);
  for (const row of answer.rows)
    for (const value of row) {
      if (isBlob(value)) return;
      bytes += typeof value === "string" ? 20 + 2 * value.length : 8;
    }
  if (bytes > mostBytesEach) return;
  if (rememberedBytes + bytes > mostBytes) clear();
  rememberedBytes += bytes;
  let ofSql = remembered.get(sql);
  if (!ofSql) remembered.set(sql, (ofSql = new Map()));
  ofSql.set(values, answer);
}

/** No SELECT changes anything; what begins in another way may. */
const isRead = (sql: string) => /^\s*select\b/i.test(sql);
/** undefined for what is not remembered. */
const valuesOf = ({ sql, params }: Query) =>
  isRead(sql) && !params.some(isBlob) ? JSON.stringify(params) : undefined;

/**
 * One SQLite database as a Durable Object. workerd's own D1 sends each query as JSON over HTTP through two more isolates,
 * which takes four times as long as a call.
 */
export class EmbeddedDatabase extends DurableObject {
  constructor(state: DurableObjectState, env: Cloudflare.Env) {
    super(state, env);
    forget();
  }

  /** All queries in one transaction. */
  query(queries: Query[]): Answer[] {
    return this.ctx.storage.transactionSync(() => queries.map((query) => this.one(query)));
  }

  /** For Node, which cannot call objects of Miniflare's: the same in JSON. */
  override async fetch(request: Request): Promise<Response> {
    return Response.json(this.query(await request.json<Query[]>()));
  }

  private one({ sql, params }: Query): Answer {
    const before = isRead(sql) ? undefined : this.changes();
    const cursor = this.ctx.storage.sql.exec(sql, ...params);
    const rows = [...cursor.raw()] as Value[][];
    if (before === undefined) return { columns: cursor.columnNames, rows, changes: 0, lastRowId: 0, version };
    const after = this.changes();
    const changes = after.total - before.total;
    // Statements that change the schema count no rows.
    if (changes > 0 || !/^\s*(insert|update|delete|with)\b/i.test(sql)) forget();
    return { columns: cursor.columnNames, rows, changes, lastRowId: after.lastRowId, version };
  }

  private changes() {
    return this.ctx.storage.sql
      .exec<{ total: number; lastRowId: number }>(
        "SELECT total_changes() AS total, last_insert_rowid() AS lastRowId",
      )
      .one();
  }
}

/** What Berth uses of `D1Database`, with its values, its transactions and its errors. */
export function embeddedD1(namespace: () => DurableObjectNamespace<EmbeddedDatabaseRpc>): D1Database {
  let id: DurableObjectId | undefined;
  const query = async (queries: readonly Query[]): Promise<Answer[]> => {
    const values = queries.map(valuesOf);
    const known = queries.flatMap(({ sql }, at) =>
      values[at] === undefined ? [] : (remembered.get(sql)?.get(values[at]) ?? []),
    );
    if (known.length === queries.length) return known;
    const objects = namespace();
    id ??= objects.idFromName("berth");
    try {
      const answers: Answer[] = await objects.get(id).query([...queries]);
      for (const [at, { sql }] of queries.entries())
        if (values[at] !== undefined && answers[at]) remember(sql, values[at], answers[at]);
      return answers;
    } catch (error) {
      throw new Error(`D1_ERROR: ${(error as Error).message}`, { cause: error });
    }
  };
  const statement = (sql: string, params: readonly Value[]) => {
    const one = async () => (await query([{ sql, params: [...params] }]))[0] as Answer;
    return {
      sql,
      params,
      bind: (...values: unknown[]) => statement(sql, values.map(bound)),
      run: async () => new Result(await one()),
      all: async () => new Result(await one()),
      raw: async () => rowsOf(await one()),
      first: async (column?: string) => {
        const row = objectsOf(await one())[0];
        return row === undefined ? null : column === undefined ? row : row[column];
      },
    };
  };
  return {
    prepare: (sql: string) => statement(sql, []),
    batch: async (statements: ReturnType<typeof statement>[]) =>
      (await query(statements.map(({ sql, params }) => ({ sql, params: [...params] })))).map(
        (answer) => new Result(answer),
      ),
  } as unknown as D1Database;
}

function bound(value: unknown): Value {
  if (typeof value === "boolean") return value ? 1 : 0;
  if (ArrayBuffer.isView(value))
    return value.buffer.slice(value.byteOffset, value.byteOffset + value.byteLength) as ArrayBuffer;
  if (
    value === null ||
    typeof value === "number" ||
    typeof value === "string" ||
    value instanceof ArrayBuffer
  )
    return value;
  throw new Error(`D1_TYPE_ERROR: Type '${typeof value}' not supported`);
}

const isBlob = (value: Value) => value instanceof ArrayBuffer;
/** D1 answers blobs as arrays of bytes. */
const d1Value = (value: Value) => (value instanceof ArrayBuffer ? Array.from(new Uint8Array(value)) : value);

const rowsOf = ({ rows }: Answer) => rows.map((row) => (row.some(isBlob) ? row.map(d1Value) : row));

const objectsOf = (answer: Answer) =>
  rowsOf(answer).map((row) => {
    const object: Record<string, unknown> = {};
    for (const [at, name] of answer.columns.entries()) object[name] = row[at];
    return object;
  });

/** A class, because a getter in a literal holds each answer until the next full garbage collection. */
class Result {
  readonly success = true;
  private readonly answer: Answer;
  constructor(answer: Answer) {
    this.answer = answer;
  }
  get rows(): unknown[][] {
    return rowsOf(this.answer);
  }
  get results(): object[] {
    return objectsOf(this.answer);
  }
  get meta(): object {
    return { changes: this.answer.changes, last_row_id: this.answer.lastRowId };
  }
}
