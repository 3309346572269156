import { paged } from "../../answered.ts";
import { command } from "../../command.ts";
import { connect, nextCommand, signal } from "../../context.ts";
import { siteId } from "../../site.ts";
import { cut, dim, paginated, safe, show, status, table, when } from "../../terminal.ts";

export const listJobs = paged(
  command("list", "Past and running commands: one-off and scheduled", "listCommands"),
  20,
)
  .argument("[site]", "name or id")
  .option("--schedule <id>", "only runs of this schedule")
  .action(async (site, { schedule, limit, cursor }) => {
    const client = await connect();
    const page = await client.call(
      "listCommands",
      { id: await siteId(client, site), limit, cursor, scheduleId: schedule },
      { signal },
    );
    show("listCommands", page, ({ data, nextCursor }) =>
      paginated(
        table(
          data,
          {
            status: (one) => status(one.status),
            command: (one) => cut(safe(one.command), 60),
            exit: ({ exitCode }) => (exitCode === null ? dim("–") : String(exitCode)),
            by: ({ trigger }) => trigger,
            when: ({ createdAt }) => when(createdAt),
            id: ({ id }) => dim(id),
          },
          `No commands. Run one with \`${nextCommand("exec", site)} -- <command>\`.`,
        ),
        nextCursor,
      ),
    );
  });
