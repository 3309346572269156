import { command } from "../command.ts";
import { connect, signal } from "../context.ts";
import { followDeployment } from "../follow.ts";
import { siteId } from "../site.ts";
import { show } from "../terminal.ts";

export const rollback = command(
  "rollback",
  "Go back to the previous deployment, or to a given one",
  "getDeployment",
)
  .argument("[deployment]", "id of a deployment that was live; default: the one before")
  .option("--no-wait", "do not follow the deployment")
  .action(async (target, options) => {
    const client = await connect();
    const id = await siteId(client);
    const { deploymentId } = await client.call(
      "rollbackSite",
      { id, ...(target !== undefined && { deploymentId: target }) },
      { signal },
    );
    if (deploymentId === undefined) return;
    if (!options.wait) {
      show(
        "getDeployment",
        await client.call("getDeployment", { id: deploymentId }, { signal }),
        (one) => one.id,
      );
      return;
    }
    const done = await followDeployment(client, deploymentId);
    show("getDeployment", done, () => `Serving ${done.commit?.slice(0, 8) ?? "the earlier version"}.`);
  });
