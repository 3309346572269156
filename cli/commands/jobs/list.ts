import { command, whole } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { siteId } from "../../site.ts";
import { dim, safe, show, status, table, when } from "../../terminal.ts";

export const listJobs = command("list", "Commands that ran or run: one-off and scheduled", "listCommands")
  .argument("[site]", "name or id")
  .option("--schedule <id>", "only runs of this schedule")
  .option("--limit <n>", "how many", whole, 20)
  .action(async (site, { schedule, limit }) => {
    const client = await connect();
    const page = await client.call(
      "listCommands",
      { id: await siteId(client, site), limit, scheduleId: schedule },
      { signal },
    );
    show("listCommands", page, ({ data }) =>
      table(
        data,
        {
          status: (one) => status(one.status),
          command: (one) => safe(one.command.slice(0, 60)),
          exit: ({ exitCode }) => (exitCode === null ? dim("–") : String(exitCode)),
          by: ({ trigger }) => trigger,
          when: ({ createdAt }) => when(createdAt),
          id: ({ id }) => dim(id),
        },
        "No commands. Run one with `berth exec -- <command>`.",
      ),
    );
  });
