import { paged } from "../../answered.ts";
import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { bold, dim, paginated, safe, show, status, styled, table } from "../../terminal.ts";

export const listDatabases = paged(command("list", "Your databases, newest first", "listDatabases")).action(
  async ({ limit, cursor }) => {
    const client = await connect();
    show(
      "listDatabases",
      await client.call("listDatabases", { limit, cursor }, { signal }),
      ({ data, nextCursor }) =>
        paginated(
          table(
            data,
            {
              name: ({ name }) => bold(safe(name)),
              type: ({ type, version }) => `${type} ${dim(safe(version ?? ""))}`,
              status: (one) => status(one.status),
              "linked to": ({ links }) => (links.length === 0 ? dim("–") : String(links.length)),
              backups: ({ backups }) =>
                backups.failing ? styled("red", "failing") : (backups.schedule ?? dim("off")),
              id: ({ id }) => dim(id),
            },
            "No databases. Create one with `berth databases create`.",
          ),
          nextCursor,
        ),
    );
  },
);
