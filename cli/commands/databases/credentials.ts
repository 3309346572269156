import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { databaseId } from "../../site.ts";
import { fields, safe, show } from "../../terminal.ts";

export const credentials = command(
  "credentials",
  "User, password and connection string: secrets",
  "getDatabaseCredentials",
)
  .argument("<database>", "name or id")
  .action(async (named) => {
    const client = await connect();
    show(
      "getDatabaseCredentials",
      await client.call("getDatabaseCredentials", { id: await databaseId(client, named) }, { signal }),
      (one) =>
        fields({
          User: safe(one.username),
          Password: safe(one.password),
          Connection: safe(one.connectionString),
          Public: one.publicAccess && safe(one.publicAccess.connectionString),
        }),
    );
  });
