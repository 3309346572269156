import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { siteId } from "../../site.ts";
import { show } from "../../terminal.ts";

export const showWebhook = command(
  "show",
  "The address to give to your Git host; whoever knows it can deploy",
  "getWebhook",
)
  .argument("[site]", "name or id")
  .action(async (site) => {
    const client = await connect();
    show(
      "getWebhook",
      await client.call("getWebhook", { id: await siteId(client, site) }, { signal }),
      ({ url }) => url,
    );
  });
