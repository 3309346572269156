import { paged } from "../../answered.ts";
import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { bold, dim, paginated, safe, show, size, status, styled, table, when } from "../../terminal.ts";

export const listHosts = paged(command("list", "All hosts", "listHosts"), 100).action(
  async ({ limit, cursor }) => {
    const client = await connect();
    show("listHosts", await client.call("listHosts", { limit, cursor }, { signal }), ({ data, nextCursor }) =>
      paginated(
        [
          table(
            data,
            {
              name: ({ name }) => bold(safe(name)),
              status: (one) => status(one.status),
              connected: ({ connected, offlineSince }) =>
                connected ? "yes" : styled("red", `no, ${when(offlineSince)}`),
              region: ({ region }) => safe(region ?? "–"),
              "free memory": ({ freeMemoryMb }) => size(freeMemoryMb),
              sites: ({ siteCount }) => String(siteCount),
              databases: ({ databaseCount }) => String(databaseCount),
              id: ({ id }) => dim(id),
            },
            "No hosts.",
          ),
          ...data.flatMap(({ name, connected, problems }) =>
            connected ? problems.map((problem) => styled("red", `${safe(name)}: ${safe(problem)}`)) : [],
          ),
        ].join("\n"),
        nextCursor,
      ),
    );
  },
);
