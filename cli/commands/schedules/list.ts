import { paged } from "../../answered.ts";
import { command } from "../../command.ts";
import { connect, nextCommand, signal } from "../../context.ts";
import { siteId } from "../../site.ts";
import { bold, cut, dim, paginated, safe, show, table, when } from "../../terminal.ts";

export const listSchedules = paged(command("list", "A site's schedules", "listSchedules"), 100)
  .argument("[site]", "name or id")
  .action(async (site, { limit, cursor }) => {
    const client = await connect();
    const page = await client.call(
      "listSchedules",
      { id: await siteId(client, site), limit, cursor },
      { signal },
    );
    show("listSchedules", page, ({ data, nextCursor }) =>
      paginated(
        table(
          data,
          {
            name: ({ name }) => bold(safe(name)),
            cron: ({ cron }) => safe(cron),
            command: (one) => cut(safe(one.command), 50),
            enabled: ({ enabled }) => (enabled ? "yes" : dim("no")),
            next: ({ nextRunAt }) => when(nextRunAt),
            id: ({ id }) => dim(id),
          },
          `No schedules. Create one with \`${nextCommand("schedules create", site)}\`.`,
        ),
        nextCursor,
      ),
    );
  });
