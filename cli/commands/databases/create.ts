import type { Answer } from "../../../client/index.ts";
import { billingTerm, command } from "../../command.ts";
import { connect, connection, signal } from "../../context.ts";
import { usage } from "../../failure.ts";
import { packId } from "../../site.ts";
import { bold, link, safe, show, styled } from "../../terminal.ts";

/** All of them: without one it does not compile. */
const types = { postgresql: true, mysql: true, redis: true } satisfies Record<
  Answer<"getDatabase">["type"],
  true
>;
const isType = (text: string): text is keyof typeof types => Object.hasOwn(types, text);
const names = Object.keys(types).join(", ");

export const createDatabase = command(
  "create",
  "Create a database; it starts once its first invoice is paid",
  "createDatabase",
)
  .argument("<name>")
  .argument("<type>", names)
  .option("--pack <pack>", "name or id: berth packs list; default: the cheapest")
  .option("--months <n>", "billing term: 1, 3, 6, 12 or 24", billingTerm, 1 as const)
  .option("--region <region>", "where it runs; default: anywhere")
  .action(async (name, type, options) => {
    if (!isType(type)) throw usage(`${type} is not a type of database.`, `Give ${names}.`);
    const client = await connect();
    const made = await client.call(
      "createDatabase",
      {
        name,
        type,
        packId: options.pack && (await packId(client, "database", options.pack)),
        region: options.region,
        billingTerm: options.months,
      },
      { signal },
    );
    show("createDatabase", made, ({ databaseId: id, invoiceToken }) =>
      [
        `${styled("green", "✓")} Created ${bold(safe(name))} (${id}).`,
        `Pay its first invoice to start it: ${link(`${connection().url}/invoice/${invoiceToken}`)}`,
      ].join("\n"),
    );
  });
