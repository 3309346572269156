import { command, whole } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { siteId } from "../../site.ts";
import { safe, show, styled, when } from "../../terminal.ts";

export const createSchedule = command("create", "Run a command on a cron schedule, in UTC", "createSchedule")
  .argument("<name>")
  .argument("<cron>", "five fields, such as '30 3 * * *', or @daily")
  .argument("<command>", "one line for sh")
  .option("--timeout <seconds>", "when to stop a run", whole, 600)
  .option("--disabled", "do not run it yet")
  .action(async (name, cron, line, options) => {
    const client = await connect();
    const made = await client.call(
      "createSchedule",
      {
        id: await siteId(client),
        name,
        cron,
        command: line,
        timeoutSeconds: options.timeout,
        enabled: !options.disabled,
      },
      { signal },
    );
    show(
      "createSchedule",
      made,
      (one) =>
        `${styled("green", "✓")} ${safe(one.name)} ${one.enabled ? `runs ${when(one.nextRunAt)}` : "is made, and disabled"}.`,
    );
  });
