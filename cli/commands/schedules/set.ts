import { command, whole } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { usage } from "../../failure.ts";
import { safe, show, when } from "../../terminal.ts";

export const setSchedule = command("set", "Change, enable or disable a schedule", "patchSchedule")
  .argument("<schedule>", "id")
  .option("--name <name>")
  .option("--cron <cron>")
  .option("--command <line>")
  .option("--timeout <seconds>", "when to stop a run", whole)
  .option("--enable")
  .option("--disable")
  .action(async (id, { name, cron, command: line, timeout, enable, disable }) => {
    if (enable && disable) throw usage("Give --enable or --disable, not both.");
    const enabled = enable ? true : disable ? false : undefined;
    const client = await connect();
    const changed = await client.call(
      "patchSchedule",
      { id, name, cron, command: line, timeoutSeconds: timeout, enabled },
      { signal },
    );
    show(
      "patchSchedule",
      changed,
      (one) => `${safe(one.name)}: ${one.enabled ? `next run ${when(one.nextRunAt)}` : "disabled"}.`,
    );
  });
