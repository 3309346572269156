import { answered, packChanged } from "../../answered.ts";
import { billingTerm, command } from "../../command.ts";
import { connect, connection, nextCommand, signal } from "../../context.ts";
import { fieldsFrom, pairsHelp } from "../../pairs.ts";
import { findSite, packId, siteId } from "../../site.ts";
import { link, safe, show, styled } from "../../terminal.ts";

export const setSite = command(
  "set",
  "Change a site's settings: port, startCommand, healthCheckPath, lifecycle.… and others of the API",
  "getSite",
)
  .argument("<field=value...>", pairsHelp)
  .action(async (pairs) => {
    const client = await connect();
    const { id, healthCheck, lifecycle, ingress } = await findSite(client);
    const { headers, hsts, maintenance } = ingress;
    const settings = fieldsFrom(pairs, {
      healthCheck,
      lifecycle,
      "ingress.headers": headers,
      "ingress.hsts": hsts,
      "ingress.maintenance": maintenance,
    });
    await client.call("patchSite", { id, settings }, { signal });
    show(
      "getSite",
      await client.call("getSite", { id }, { signal }),
      ({ name }) => `Changed ${safe(name)}. It applies at the next deployment: ${nextCommand("deploy")}`,
    );
  });

export const resizeSite = command(
  "resize",
  "Change a site's pack: memory, processors, disk and price",
  "patchSite",
)
  .argument("<pack>", "name or id: berth packs list")
  .action(async (pack) => {
    const client = await connect();
    await answered(
      "patchSite",
      { id: await siteId(client), packId: await packId(client, "site", pack) },
      packChanged,
    );
  });

export const cloneSite = command(
  "clone",
  "Create another site with the settings, ingress rules and plain variables of this one; without its domains, schedules and links to databases",
  "cloneSite",
)
  .argument("<name>", "of the new site")
  .option("--pack <pack>", "name or id: berth packs list; default: the same")
  .option("--months <n>", "billing term: 1, 3, 6, 12 or 24", billingTerm, 1 as const)
  .action(async (name, { pack, months }) => {
    const client = await connect();
    await answered(
      "cloneSite",
      {
        id: await siteId(client),
        name,
        packId: pack && (await packId(client, "site", pack)),
        billingTerm: months,
      },
      ({ siteId: made, invoiceToken, secretsToSet }) =>
        [
          `${styled("green", "✓")} Created ${safe(name)} (${made}).`,
          `Pay its first invoice to deploy it: ${link(`${connection().url}/invoice/${invoiceToken}`)}`,
          ...(secretsToSet.length > 0 ? [`Set its secrets first: ${secretsToSet.map(safe).join(", ")}`] : []),
        ].join("\n"),
    );
  });
