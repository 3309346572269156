import type { Answer, Client } from "../../../client/index.ts";
import { command, whole } from "../../command.ts";
import { confirmed, connect, signal, standardInput } from "../../context.ts";
import { databaseId } from "../../site.ts";
import { dim, safe, show, table } from "../../terminal.ts";

const cell = (value: unknown): string =>
  value === null ? dim("null") : typeof value === "string" ? safe(value) : safe(JSON.stringify(value));

export const query = command("query", "Run one statement; read-only unless --write", "queryDatabase")
  .argument("<database>", "name or id")
  .argument("[statement]", "default: standard input")
  .option("--write", "a statement that changes data; asks first")
  .option("--limit <rows>", "how many rows", whole, 100)
  .option("--timeout <seconds>", "when to stop it", whole, 10)
  .action(async (named, given, options) => {
    const client = await connect();
    const statement = given ?? (await standardInput());
    const input = {
      id: await databaseId(client, named),
      statement,
      limit: options.limit,
      timeoutSeconds: options.timeout,
      write: options.write ?? false,
    };
    show(
      "queryDatabase",
      options.write ? await written(client, input) : await client.call("queryDatabase", input, { signal }),
      resultText,
    );
  });

/** Rows as a table, and how many. */
export function resultText(result: Answer<"queryDatabase">): string {
  const names = result.columns.map(({ name }) => name);
  const text =
    names.length === 0
      ? ""
      : table(
          result.rows,
          names.map((name, index) => [safe(name), (row: unknown[]) => cell(row[index])]),
          "No rows.",
        );
  const count =
    result.affectedRows === null
      ? `${result.rows.length} row${result.rows.length === 1 ? "" : "s"}${result.truncated ? " of more" : ""}`
      : `${result.affectedRows} rows changed`;
  return `${text}${text === "" ? "" : "\n"}${dim(`${count}, ${Math.round(result.durationMs)} ms`)}`;
}

/** The service answers what would be done, and a token with which the same statement is done. */
export async function written(
  client: Client,
  input: { id: string; statement: string; limit: number; timeoutSeconds: number; write: boolean },
): Promise<Answer<"queryDatabase">> {
  const { ApiError } = await import("../../../client/index.ts");
  try {
    return await client.call("queryDatabase", input, { signal });
  } catch (error) {
    const token = error instanceof ApiError ? error.details["confirm"] : undefined;
    if (!(error instanceof ApiError) || typeof token !== "string") throw error;
    await confirmed(`${safe(error.message)}\n`);
    return client.call("queryDatabase", { ...input, confirm: token }, { signal });
  }
}
