import { paged } from "../../answered.ts";
import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { databaseId } from "../../site.ts";
import { bold, dim, paginated, safe, show, size, status, table, when } from "../../terminal.ts";

export const listBackups = paged(
  command(
    "list",
    "Backups, newest first: of one database, or of all, deleted ones included",
    "listAllBackups",
  ),
  30,
)
  .argument("[database]", "name or id")
  .action(async (named, { limit, cursor }) => {
    const client = await connect();
    const of = named === undefined ? undefined : await databaseId(client, named);
    show(
      "listAllBackups",
      await client.call("listAllBackups", { databaseId: of, limit, cursor }, { signal }),
      ({ data, nextCursor }) =>
        paginated(
          table(
            data,
            {
              of: ({ databaseName, volume }) =>
                bold(safe(databaseName ?? `${volume?.siteName}/${volume?.name}`)),
              status: (one) => status(one.status),
              size: ({ sizeBytes }) => size(sizeBytes === null ? null : sizeBytes / 1_048_576),
              rows: ({ rows }) => (rows === null ? dim("–") : String(rows)),
              by: ({ trigger }) => trigger,
              when: ({ createdAt }) => when(createdAt),
              id: ({ id }) => dim(id),
            },
            "No backups. Create one with `berth backups create <database>`.",
          ),
          nextCursor,
        ),
    );
  });
