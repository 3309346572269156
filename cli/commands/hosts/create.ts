import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { bold, safe, show, styled } from "../../terminal.ts";

export const createHost = command(
  "create",
  "Create a host, and show the command that sets up the machine",
  "createHost",
)
  .argument("<name>")
  .option("--region <region>")
  .action(async (name, { region }) => {
    const client = await connect();
    show(
      "createHost",
      await client.call("createHost", { name, region }, { signal }),
      ({ id, installCommand }) =>
        `${styled("green", "✓")} Created ${bold(safe(name))} (${id}).\nRun on the machine, as root:\n\n  ${safe(installCommand ?? "")}\n`,
    );
  });
