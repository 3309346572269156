import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { Failure } from "../../failure.ts";
import { followDeployment } from "../../follow.ts";
import { findSite } from "../../site.ts";
import { link, safe, show } from "../../terminal.ts";

export const follow = command(
  "follow",
  "Follow a deployment to its end; the exit code is its result",
  "getDeployment",
)
  .argument("[deployment]", "id; default: the site's newest")
  .action(async (given) => {
    const client = await connect();
    const site = given === undefined ? await findSite(client) : undefined;
    const id = given ?? site?.latestDeployment?.id;
    if (id === undefined)
      throw new Failure("The site has no deployment yet.", {
        hint: "Its first one starts when its invoice is paid: `berth invoices list`.",
      });
    const done = await followDeployment(client, id);
    const { url } = site ?? (await client.call("getSite", { id: done.siteId }, { signal }));
    show("getDeployment", done, () => link(safe(url)));
  });
