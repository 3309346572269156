import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { bold, dim, safe, show, size, status, styled, table, when } from "../../terminal.ts";

export const listHosts = command("list", "All hosts", "listHosts").action(async () => {
  const client = await connect();
  show("listHosts", await client.call("listHosts", { limit: 100 }, { signal }), ({ data }) =>
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
  );
});
