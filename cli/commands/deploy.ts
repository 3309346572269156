import { command } from "../command.ts";
import { connect, signal } from "../context.ts";
import { followDeployment } from "../follow.ts";
import { commitsNotPushed, currentCommit, linkedSite } from "../git.ts";
import { findSite } from "../site.ts";
import { link, safe, say, show, styled } from "../terminal.ts";

export const deploy = command(
  "deploy",
  "Deploy what is pushed, and follow it until it serves",
  "getDeployment",
)
  .argument("[site]", "name or id")
  .option("--no-wait", "do not follow the deployment")
  .option("--rebuild", "build even if nothing changed")
  .action(async (named, options) => {
    const client = await connect();
    const site = await findSite(client, named);
    const isCheckout =
      named === undefined && site.deployType === "github" && (await linkedSite()) === site.id;
    const ahead = isCheckout ? await commitsNotPushed() : null;
    if (ahead !== null && ahead > 0)
      say(
        styled(
          "yellow",
          `${ahead} commit${ahead === 1 ? " is" : "s are"} not pushed: Berth deploys what the remote branch has.`,
        ),
      );
    const { deploymentId } = await client.call(
      "patchSite",
      { id: site.id, action: "deploy", ...(options.rebuild && { rebuild: true }) },
      { signal },
    );
    if (deploymentId === undefined) return;
    if (!options.wait) {
      show(
        "getDeployment",
        await client.call("getDeployment", { id: deploymentId }, { signal }),
        ({ id }) => id,
      );
      return;
    }
    const deployment = await followDeployment(client, deploymentId);
    const head = isCheckout ? await currentCommit() : null;
    if (head !== null && deployment.commit !== null && deployment.commit !== head)
      say(
        styled(
          "yellow",
          `It is commit ${safe(deployment.commit.slice(0, 8))}; your checkout is at ${head.slice(0, 8)}.`,
        ),
      );
    show("getDeployment", deployment, () => link(safe(site.url)));
  });
