import { billingTerm, command, whole } from "../../command.ts";
import { connect, connection, nextCommand, signal } from "../../context.ts";
import { usage } from "../../failure.ts";
import { linkSite, originAddress, repositoryAddress } from "../../git.ts";
import { packId } from "../../site.ts";
import { bold, link, say, show, styled } from "../../terminal.ts";

export const createSite = command(
  "create",
  "Create a site; it is deployed once its first invoice is paid",
  "createSite",
)
  .argument("<name>", "1–63 of a–z, 0–9 and -")
  .option("--repository <address>", "a Git repository; default: origin of this checkout")
  .option("--branch <branch>", "default: the repository's default branch")
  .option("--image <reference>", "a container image instead of a repository")
  .option("--port <port>", "the port the app listens on", whole, 3000)
  .option("--build-command <command>")
  .option("--start-command <command>")
  .option("--release-command <command>")
  .option("--root-dir <folder>", "the app's folder in the repository")
  .option("--pack <pack>", "name or id: berth packs list; default: the cheapest")
  .option("--months <n>", "billing term: 1, 3, 6, 12 or 24", billingTerm, 1 as const)
  .option("--region <region>", "where it runs; default: anywhere")
  .action(async (name, options) => {
    const ofRepository = {
      "--repository": options.repository,
      "--branch": options.branch,
      "--root-dir": options.rootDir,
      "--build-command": options.buildCommand,
    };
    const given = Object.entries(ofRepository).flatMap(([name, value]) =>
      value === undefined ? [] : [name],
    );
    if (options.image !== undefined && given.length > 0)
      throw usage(
        `--image is a site without a repository, which has no ${given.join(", ")}.`,
        "Leave out the one or the other.",
      );
    const client = await connect();
    const common = {
      name,
      port: options.port,
      startCommand: options.startCommand,
      releaseCommand: options.releaseCommand,
      packId: options.pack && (await packId(client, "site", options.pack)),
      billingTerm: options.months,
      region: options.region,
    };
    const created = await client.call(
      "createSite",
      options.image === undefined
        ? {
            deployType: "github",
            ...common,
            githubUrl: await repository(options.repository),
            branch: options.branch,
            buildCommand: options.buildCommand,
            rootDir: options.rootDir,
          }
        : { deployType: "image", ...common, image: options.image },
      { signal },
    );
    if (options.image === undefined && options.repository === undefined) await linkSite(created.siteId);
    show("createSite", created, ({ siteId, invoiceToken }) =>
      [
        `${styled("green", "✓")} Created ${bold(name)} (${siteId}).`,
        `Pay its first invoice to deploy it: ${link(`${connection().url}/invoice/${invoiceToken}`)}`,
      ].join("\n"),
    );
    say(`Then follow the deployment: ${nextCommand("deployments follow", name)}`);
  });

async function repository(typed: string | undefined): Promise<string> {
  const address = typed === undefined ? await originAddress() : (repositoryAddress(typed) ?? typed);
  if (address === null)
    throw usage(
      "Which repository? This folder's Git remote `origin` is missing or not on a server.",
      "Give --repository github.com/owner/name or --image.",
    );
  if (!/^[^/]+\/[^/]+\/./.test(address))
    throw usage(
      `${typed ?? address} is not the address of a Git repository that the service could fetch.`,
      "Give --repository github.com/owner/name.",
    );
  return address;
}
