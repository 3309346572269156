import { command } from "../../command.ts";
import { confirmed, connect, signal } from "../../context.ts";
import { hostId } from "../../site.ts";
import { safe, show } from "../../terminal.ts";

export const deleteHost = command("delete", "Remove an empty host, or a dead one with --force", "deleteHost")
  .argument("<host>", "name or id")
  .option("--force", "even if it has sites, provided that it is unreachable")
  .option("--lose-volumes", "with --force or --connected: even if the data in volumes is lost")
  .option(
    "--connected",
    "even if it has sites and is connected, such as with a stolen token, which is refused then",
  )
  .action(async (host, options) => {
    await confirmed(`Remove ${safe(host)}?`);
    const client = await connect();
    const answer = await client.call(
      "deleteHost",
      {
        id: await hostId(client, host),
        ...(options.force && { force: "1" as const }),
        ...(options.loseVolumes && { loseVolumes: "1" as const }),
        ...(options.connected && { connected: "1" as const }),
      },
      { signal },
    );
    show("deleteHost", answer, () => "Removed.");
  });
