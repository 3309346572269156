import { command } from "../../command.ts";
import { connect } from "../../context.ts";
import { fieldsFrom, pairsHelp } from "../../pairs.ts";
import { findSite } from "../../site.ts";
import { changeIngress } from "./change.ts";

export const setIngress = command(
  "set",
  "Change what the ingress does: primaryDomain, httpsOnly, hsts.maxAgeSeconds, allow, maxBodyMb and others of the API",
  "getSite",
)
  .argument("<field=value...>", pairsHelp)
  .action(async (pairs) => {
    const client = await connect();
    const { id, ingress } = await findSite(client);
    const { headers, hsts, maintenance } = ingress;
    const change = fieldsFrom(pairs, { headers, hsts, maintenance });
    await changeIngress(client, id, change, "It applies to visitors from now on.");
  });
