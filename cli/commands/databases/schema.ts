import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { databaseId } from "../../site.ts";
import { bold, dim, safe, show } from "../../terminal.ts";

export const schema = command(
  "schema",
  "Tables with their columns, or the keys of a Redis database",
  "getDatabaseSchema",
)
  .argument("<database>", "name or id")
  .action(async (named) => {
    const client = await connect();
    show(
      "getDatabaseSchema",
      await client.call("getDatabaseSchema", { id: await databaseId(client, named) }, { signal }),
      ({ tables, keyspaces }) =>
        [
          ...tables.map(
            (one) =>
              `${bold(`${safe(one.schema)}.${safe(one.name)}`)} ${dim(`${one.kind}, about ${one.rowsEstimate ?? "?"} rows`)}\n${one.columns.map((column) => `  ${safe(column.name)} ${dim(safe(column.type) + (column.nullable ? "" : " not null"))}`).join("\n")}`,
          ),
          ...keyspaces.map((one) => `${bold(`database ${one.database}`)} ${dim(`${one.keys} keys`)}`),
        ].join("\n") || dim("Empty."),
    );
  });
