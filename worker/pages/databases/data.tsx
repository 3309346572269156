import type { DatabaseQueryResult, DatabaseSchema, DatabaseTable } from "../../../protocol/api/insight.ts";
import { DatabaseQuery, maxStatementCharacters } from "../../../protocol/api/insight.ts";
import type { Database } from "../../../protocol/api/databases.ts";
import { call } from "../../api/call.ts";
import { dryRun, reasonOf, type DryRun } from "../../api/dry-run.ts";
import { AppError, asksToConfirm, conflict, invalid } from "../../domain/app-error.ts";
import { parsed } from "../../domain/parsed.ts";
import { Button, Field, Form, TextArea, typedInto } from "../kit/form.tsx";
import { Callout, Card } from "../kit/parts.tsx";
import type { Asked, Fields, Screen, View } from "../kit/screen.ts";
import { databaseFrame, databasePath, NotTold, openDatabase, told, type Told } from "./frame.tsx";

const shownRows = 200;

const count = (rows: number): string => (rows === 1 ? "1 row" : `${rows.toLocaleString("en-US")} rows`);

const Table = ({ table }: { table: DatabaseTable }) => (
  <details>
    <summary>
      <code>{["public", ""].includes(table.schema) ? table.name : `${table.schema}.${table.name}`}</code>{" "}
      <span class="soft small">
        {table.kind === "table" ? "" : `${table.kind} `}
        {table.rowsEstimate !== null && `≈ ${count(Math.round(table.rowsEstimate))}`}
      </span>
    </summary>
    <ul class="column-names">
      {table.columns.map(({ name, type, nullable }) => {
        const refers = table.foreignKeys.find(({ columns }) => columns.includes(name));
        return (
          <li>
            <code>{name}</code>{" "}
            <span class="soft small">
              {type}
              {table.primaryKey.includes(name) ? ", primary key" : nullable ? "" : ", not null"}
              {refers && ` → ${refers.table}`}
            </span>
          </li>
        );
      })}
    </ul>
  </details>
);

const Schema = ({ database, schema }: { database: Database; schema: Told<DatabaseSchema> }) => {
  if (!("value" in schema)) return <NotTold database={database} reason={schema.reason} />;
  const { tables, keyspaces, truncated } = schema.value;
  if (tables.length === 0 && keyspaces.length === 0)
    return (
      <p class="body soft">
        There is nothing in it yet.
        {database.type !== "redis" && (
          <>
            {" "}
            To import a dump, see <a href={databasePath(database.id, "connect")}>Connect</a>.
          </>
        )}
      </p>
    );
  return (
    <div class="body tree">
      {tables.map((table) => (
        <Table table={table} />
      ))}
      {keyspaces.map(({ database: number, keys, byType }) => (
        <p>
          Database {number}: {keys} {keys === 1 ? "key" : "keys"}{" "}
          <span class="soft">
            {Object.entries(byType)
              .map(([type, many]) => `${many} ${type}`)
              .join(", ")}
          </span>
        </p>
      ))}
      {truncated && <p class="soft">There is more than shown here.</p>}
    </div>
  );
};

const cell = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

const Result = ({ result }: { result: DatabaseQueryResult }) => {
  const { columns, rows, truncated, affectedRows, durationMs } = result;
  return (
    <Card
      title={affectedRows === null ? count(rows.length) : `${count(affectedRows)} changed`}
      end={<span class="soft small">{Math.round(durationMs)} ms</span>}
    >
      {columns.length > 0 && (
        <div class="result" tabindex={0} role="region" aria-label="Result">
          <table>
            <thead>
              <tr>
                {columns.map(({ name, type }) => (
                  <th scope="col">
                    {name} <span class="small">{type}</span>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr>
                  {row.map((value) => (
                    <td class={typeof value === "number" ? "number" : ""}>
                      {value === null ? <span class="soft">null</span> : cell(value)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {truncated && (
        <p class="body soft">{`Only the first ${rows.length} are shown: narrow the statement down.`}</p>
      )}
    </Card>
  );
};

type Tried = { statement: string; confirm: string; title: string; text: string };

const wordsOf = (found: DryRun): Pick<Tried, "title" | "text"> => {
  const title = "Run a statement that writes?";
  if ("untried" in found) return { title, text: `There was no dry run: ${found.untried}` };
  if (found.affectedRows === null) return { title, text: "A dry run succeeded, and counted no rows." };
  return {
    title: `This changes ${count(found.affectedRows)}`,
    text: "It was run and rolled back to count them: nothing has changed yet.",
  };
};

const ConfirmWrite = ({ database, tried }: { database: Database; tried: Tried }) => (
  <Callout tone="warn" title={tried.title}>
    <p>{tried.text} It cannot be undone, except by restoring a backup.</p>
    <pre tabindex={0}>{tried.statement}</pre>
    <Form id="write">
      <input type="hidden" name="statement" value={tried.statement} />
      <input type="hidden" name="token" value={tried.confirm} />
      <Field name="confirm" label={`Type ${database.name} to run it`} required />
      <div class="form-end row">
        <Button label="Run it" kind="danger primary" />
        <a class="button" href={databasePath(database.id, "data")}>
          Do not run it
        </a>
      </div>
    </Form>
  </Callout>
);

type Shown = { result?: DatabaseQueryResult; tried?: Tried };

async function page({ ctx, param, query }: Asked, { result, tried }: Shown = {}): Promise<View> {
  const opened = await openDatabase(ctx, param("id"));
  const { database } = opened;
  const schema = await told(call(ctx, "getDatabaseSchema", { id: database.id }));
  const isRedis = database.type === "redis";
  return databaseFrame(
    opened,
    "data",
    <div class="split data">
      <div class="stack">
        <Card title={isRedis ? "Command" : "SQL"}>
          <div class="body">
            <Form id="query">
              <TextArea
                name="statement"
                label={isRedis ? "One command" : "One statement"}
                rows={6}
                wide
                required
                maxlength={maxStatementCharacters}
                value={tried?.statement ?? typedInto("write")?.["statement"] ?? query("statement") ?? ""}
                placeholder={isRedis ? "SCAN 0 COUNT 100" : "SELECT * FROM …"}
              />
              <div class="form-end row">
                <Button label="Run, reading only" kind="primary" name="mode" value="read" />
                <Button label="Run and write …" name="mode" value="write" />
                <span class="soft small">
                  {isRedis
                    ? "A command that writes is run only after you confirm it."
                    : "Writing counts the rows first where it can, and asks you to confirm."}
                </span>
              </div>
            </Form>
          </div>
        </Card>
        {tried && (
          <div tabindex={-1} data-flash>
            <ConfirmWrite database={database} tried={tried} />
          </div>
        )}
        {result && (
          <div tabindex={-1} data-flash>
            <Result result={result} />
          </div>
        )}
      </div>
      <Card title={isRedis ? "Keys" : "Tables"}>
        <Schema database={database} schema={schema} />
      </Card>
    </div>,
  );
}

const mustHave = (fields: Fields): string => {
  const statement = fields.text("statement").trim();
  if (statement === "") throw invalid("statement", "enter one statement");
  return parsed(DatabaseQuery, { statement }).statement;
};

const read = { write: false, dryRun: false, limit: shownRows, timeoutSeconds: 10 } as const;

/** The token that allows this statement to write; its first request is refused with it. */
async function confirmationOf(asked: Asked, statement: string): Promise<string> {
  try {
    await call(asked.ctx, "queryDatabase", { ...read, id: asked.param("id"), statement, write: true });
  } catch (error) {
    if (asksToConfirm(error)) return error.extra.confirm;
    throw error;
  }
  throw conflict("The statement was run without a confirmation. Check the data.");
}

export const databaseData: Screen = {
  path: "/databases/:id/data",
  show: (asked) => page(asked),
  forms: {
    async query(asked, fields) {
      const { ctx, param } = asked;
      const id = param("id");
      const statement = mustHave(fields);
      if (fields.text("mode") !== "write")
        return {
          again: await page(asked, { result: await call(ctx, "queryDatabase", { ...read, id, statement }) }),
        };
      const found = await dryRun(ctx, await call(ctx, "getDatabase", { id }), statement);
      const confirm = await confirmationOf(asked, statement);
      return { again: await page(asked, { tried: { statement, confirm, ...wordsOf(found) } }) };
    },
    async write(asked, fields) {
      const { ctx, param } = asked;
      const database = await call(ctx, "getDatabase", { id: param("id") });
      const { id, name } = database;
      const statement = mustHave(fields);
      const confirm = fields.text("token");
      if (fields.text("confirm").trim() !== name) {
        const found = await dryRun(ctx, database, statement);
        const again = await page(asked, { tried: { statement, confirm, ...wordsOf(found) } });
        return { again, problems: { confirm: `Nothing was run: type ${name}.` } };
      }
      const result = await call(ctx, "queryDatabase", { ...read, id, statement, write: true, confirm }).catch(
        (error: unknown) => {
          // Not as a field that is wrong, which changes nothing: a part of the statement may have been committed.
          if (error instanceof AppError && error.code === "invalid_request") throw conflict(reasonOf(error));
          throw error;
        },
      );
      return {
        to: databasePath(id, "data"),
        said:
          result.affectedRows === null ? "It was run." : `It was run: ${count(result.affectedRows)} changed.`,
      };
    },
  },
};
