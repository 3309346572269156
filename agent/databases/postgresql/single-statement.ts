import type { Connection, FieldDef, Submittable } from "pg";
import { sessionOnly, StatementError } from "../inspect/place.ts";
import type { Rows } from "../inspect/rows.ts";

/** A method that the published types omit. */
type Wire = Connection & { sendCopyFail(reason: string): void };
type Value = (text: string, type: number) => unknown;
export type Ended = { fields: FieldDef[]; affectedRows: number | null };

const rowsAtOnce = 20;
/** What the server says it did, of commands that end with their session. */
const overWithSession =
  /^(?:BEGIN|START TRANSACTION|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|SET|SET CONSTRAINTS|RESET|LOCK TABLE|PREPARE)$/;

/**
 * Runs one statement by PostgreSQL's extended protocol, whose Parse rejects a second one in the same text. It fetches
 * rows in small portions, so that the server stops at the limit. `pg`'s own query collects all rows, and its cursor
 * misses errors at the commit.
 */
export class SingleStatement implements Submittable {
  readonly ended: Promise<Ended>;
  private readonly text: string;
  private readonly rows: Rows;
  private readonly valueOf: Value;
  private readonly isWrite: boolean;
  private readonly onRow: () => void;
  private fields: FieldDef[] = [];
  private affectedRows: number | null = null;
  private isSynced = false;
  private resolve: (ended: Ended) => void = () => undefined;
  private reject: (error: Error) => void = () => undefined;

  constructor(text: string, rows: Rows, isWrite: boolean, valueOf: Value, onRow: () => void) {
    this.text = text;
    this.rows = rows;
    this.isWrite = isWrite;
    this.valueOf = valueOf;
    this.onRow = onRow;
    this.ended = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    this.ended.catch(() => undefined);
  }

  submit = (connection: Connection): void => {
    connection.parse({ name: "", text: this.text, types: [] }, true);
    connection.bind({}, true);
    connection.describe({ type: "P", name: "" }, true);
    this.next(connection);
  };

  handleRowDescription({ fields }: { fields: FieldDef[] }): void {
    this.fields = fields;
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    this.onRow();
    try {
      this.rows.add(
        fields.map((text, index) =>
          text === null ? null : this.valueOf(text, this.fields[index]?.dataTypeID ?? 0),
        ),
      );
    } catch (error) {
      this.fail(error as Error);
    }
  }

  handlePortalSuspended(connection: Connection): void {
    // A writing statement must complete, however little of it is shown.
    if (this.isWrite || !this.rows.truncated) this.next(connection);
    else this.sync(connection);
  }

  handleCommandComplete({ text }: { text: string }, connection: Connection): void {
    if (overWithSession.test(text)) return this.fail(sessionOnly(text));
    const count = /^(?:INSERT \d+|UPDATE|DELETE|MERGE|COPY|SELECT) (\d+)$/.exec(text)?.[1];
    this.affectedRows = count === undefined || text.startsWith("SELECT") ? null : Number(count);
    this.sync(connection);
  }

  handleEmptyQuery(connection: Connection): void {
    this.sync(connection);
  }

  handleCopyInResponse(connection: Wire): void {
    connection.sendCopyFail("there is nothing to copy from: use INSERT");
  }

  handleCopyData(): void {
    this.fail(new StatementError("COPY has nowhere to write to: use SELECT."));
  }

  handleError(error: Error, connection: Connection): void {
    this.sync(connection);
    this.reject(error);
  }

  handleReadyForQuery(): void {
    this.resolve({ fields: this.fields, affectedRows: this.affectedRows });
  }

  private next(connection: Connection): void {
    connection.execute({ portal: "", rows: String(rowsAtOnce) }, true);
    connection.flush();
  }

  /** Without the synchronization the server commits nothing: it rolls back when the connection closes. */
  private fail(error: Error): void {
    this.isSynced = true;
    this.reject(error);
  }

  private sync(connection: Connection): void {
    if (this.isSynced) return;
    this.isSynced = true;
    connection.sync();
  }
}
