import { command } from "../../command.ts";
import { connect, signal, standardInput } from "../../context.ts";
import { bold, safe, show, styled } from "../../terminal.ts";

export const createHost = command(
  "create",
  "Create a host, and show the command that sets up the machine",
  "createHost",
)
  .argument("<name>")
  .option("--region <region>")
  .option("--with-token", "read the token of a machine that was a host before from standard input")
  .action(async (name, { region, withToken }) => {
    const token = withToken ? (await standardInput()).trim() : undefined;
    const client = await connect();
    show(
      "createHost",
      await client.call("createHost", { name, region, token }, { signal }),
      ({ id, installCommand }) =>
        `${styled("green", "✓")} Created ${bold(safe(name))} (${id}).\nRun on the machine, as root:\n\n  ${safe(installCommand ?? "")}\n`,
    );
  });
