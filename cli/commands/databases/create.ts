import { billingTerm, command } from "../../command.ts";
import { connect, connection, signal } from "../../context.ts";
import { usage } from "../../failure.ts";
import { bold, link, safe, show, styled } from "../../terminal.ts";

const types = ["postgresql", "mysql", "redis"] as const;

export const createDatabase = command(
  "create",
  "Create a database; it starts once its first invoice is paid",
  "createDatabase",
)
  .argument("<name>")
  .argument("<type>", "postgresql, mysql or redis")
  .option("--pack <id>", "berth packs list; default: the cheapest")
  .option("--months <n>", "billing term: 1, 3, 6, 12 or 24", billingTerm, 1 as const)
  .option("--region <region>", "where it runs; default: anywhere")
  .action(async (name, type, options) => {
    const known = types.find((one) => one === type);
    if (known === undefined) throw usage(`${type} is not a type of database.`, `Give ${types.join(", ")}.`);
    const client = await connect();
    const made = await client.call(
      "createDatabase",
      { name, type: known, packId: options.pack, region: options.region, billingTerm: options.months },
      { signal },
    );
    show("createDatabase", made, ({ databaseId: id, invoiceToken }) =>
      [
        `${styled("green", "✓")} Created ${bold(safe(name))} (${id}).`,
        `Pay its first invoice to start it: ${link(`${connection().url}/invoice/${invoiceToken}`)}`,
      ].join("\n"),
    );
  });
