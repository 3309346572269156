import { paged } from "../../answered.ts";
import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { bold, dim, paginated, safe, show, status, table, when } from "../../terminal.ts";

export const listSites = paged(command("list", "Your sites, newest first", "listSites")).action(
  async ({ limit, cursor }) => {
    const client = await connect();
    const page = await client.call("listSites", { limit, cursor }, { signal });
    show("listSites", page, ({ data, nextCursor }) =>
      paginated(
        table(
          data,
          {
            name: ({ name }) => bold(safe(name)),
            status: (site) => status(site.status) + (site.hostOffline ? dim(" (host offline)") : ""),
            url: ({ url }) => safe(url),
            deployed: ({ currentDeployment }) => when(currentDeployment?.finishedAt ?? null),
            id: ({ id }) => dim(id),
          },
          "You have no sites. Create one with `berth sites create` or, in a Git checkout, `berth init`.",
        ),
        nextCursor,
      ),
    );
  },
);
