import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { databaseId, siteId } from "../../site.ts";
import { bold, safe, show } from "../../terminal.ts";

export const linkDatabase = command(
  "link",
  "Give a site the connection string as a secret variable",
  "linkDatabase",
)
  .argument("<database>", "name or id")
  .option("--variable <name>", "default: DATABASE_URL, or REDIS_URL")
  .action(async (named, { variable }) => {
    const client = await connect();
    const answer = await client.call(
      "linkDatabase",
      { id: await databaseId(client, named), siteId: await siteId(client), variable },
      { signal },
    );
    show(
      "linkDatabase",
      answer,
      (one) =>
        `${one.siteId} has it as ${bold(safe(one.variable))}${one.restartRequired ? ", from its next restart or deployment" : ""}.`,
    );
  });

export const unlinkDatabase = command("unlink", "Remove the variable from a site", "unlinkDatabase")
  .argument("<database>", "name or id")
  .option("--all", "from all sites")
  .action(async (named, { all }) => {
    const client = await connect();
    const answer = await client.call(
      "unlinkDatabase",
      { id: await databaseId(client, named), siteId: all ? undefined : await siteId(client) },
      { signal },
    );
    show(
      "unlinkDatabase",
      answer,
      ({ unlinked }) => `Unlinked from ${unlinked.length} site${unlinked.length === 1 ? "" : "s"}.`,
    );
  });
