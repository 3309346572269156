import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "../../client/index.ts";
import { command } from "../command.ts";
import { connect, connection, nextCommand, signal } from "../context.ts";
import { exitCodes, Failure } from "../failure.ts";
import { followDeployment } from "../follow.ts";
import { commitsNotPushed, currentCommit, linkedSite, originAddress } from "../git.ts";
import { findProjectFile } from "../project-file.ts";
import { apply } from "../project/apply.ts";
import { isRemoval } from "../project/plan.ts";
import { comparison } from "../project/state.ts";
import { planText } from "../project/text.ts";
import { findSite, namedSite, type Site } from "../site.ts";
import { link, output, safe, say, show, spin, styled } from "../terminal.ts";

export const deploy = command(
  "deploy",
  "Deploy what is pushed, and follow it until it is live; creates the site of berth.json if there is none",
  "getDeployment",
)
  .argument("[site]", "name or id")
  .option("--no-wait", "do not follow the deployment")
  .option("--rebuild", "build even if nothing changed")
  .option("--ref <ref>", "a branch, a tag or a whole commit id to deploy once; default: the site's branch")
  .action(async (named, options) => {
    const client = await connect();
    const target = await siteToDeploy(client, named);
    const { site } = target;
    const isCheckout = options.ref === undefined && (await isCheckoutOf(site));
    const ahead = isCheckout ? await commitsNotPushed() : null;
    if (ahead !== null && ahead > 0)
      say(
        styled(
          "yellow",
          `${ahead} commit${ahead === 1 ? " is" : "s are"} not pushed: Berth deploys what the remote branch has.`,
        ),
      );
    const deploymentId = await queued(client, target, options);
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
          `This is commit ${safe(deployment.commit.slice(0, 8))}; your checkout is at ${head.slice(0, 8)}.`,
        ),
      );
    show("getDeployment", deployment, () => link(safe(site.url)));
  });

/** The working directory is a checkout of the site's repository. */
async function isCheckoutOf({ id, deployType, githubUrl }: Site): Promise<boolean> {
  if (deployType !== "github") return false;
  if ((await linkedSite()) === id) return true;
  const [origin, source] = [await originAddress(), githubUrl].map((one) => one?.replace(/\.git$/, ""));
  return origin !== undefined && origin === source;
}

/** `payAt`: where to pay, in this order, for a site that was created just now. */
type Target = { site: Site; payAt?: string[] };

/** The site that is meant. One that only berth.json knows yet is created by it, which shows where to pay. */
async function siteToDeploy(client: Client, named: string | undefined): Promise<Target> {
  if ((await namedSite(named)) === undefined && findProjectFile() !== undefined) {
    const { file, actual, steps } = await comparison(client);
    if (actual.site === null) {
      say(planText(steps, false));
      const taken = steps.filter((step) => !isRemoval(step));
      const { siteId, invoices } = await apply(client, file, actual, taken);
      return { site: await client.call("getSite", { id: siteId }, { signal }), payAt: invoices };
    }
  }
  return { site: await findSite(client, named) };
}

/**
 * The deployment that follows from the request. That of a site that was never paid for begins with its payment, which a
 * person at a terminal may make meanwhile, but which deploys the site's branch. @throws ApiError payment_required, Failure (payment needed)
 */
async function queued(
  client: Client,
  { site: { id, status }, payAt }: Target,
  { wait, rebuild, ref }: { wait: boolean; rebuild?: true | undefined; ref?: string | undefined },
): Promise<string | undefined> {
  const canWait = wait && output.isInteractive && status === "PENDING" && ref === undefined;
  if (payAt === undefined)
    try {
      const input = {
        id,
        action: "deploy" as const,
        ...(rebuild && { rebuild: true }),
        ...(ref !== undefined && { ref }),
      };
      return (await client.call("patchSite", input, { signal })).deploymentId;
    } catch (error) {
      const { ApiError } = await import("../../client/index.ts");
      const token = error instanceof ApiError ? error.details["invoiceToken"] : undefined;
      if (typeof token !== "string" || !canWait) throw error;
      say(`Pay to start it: ${link(`${connection().url}/invoice/${token}`)}`);
    }
  else if (!canWait)
    throw new Failure("The site is deployed once it is paid for.", {
      exitCode: exitCodes.paymentNeeded,
      hint: `Pay ${payAt.length > 1 ? "in this order: " : "it at "}${payAt.join(", ")}; then \`${nextCommand("deployments follow")}\` shows its first deployment.`,
    });
  const spinner = spin("Waiting for the payment …");
  try {
    for (;;) {
      const { latestDeployment } = await client.call("getSite", { id }, { signal });
      if (latestDeployment !== null) return latestDeployment.id;
      await delay(2000, undefined, { signal });
    }
  } finally {
    spinner.stop();
  }
}
