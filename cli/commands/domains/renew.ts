import { answered } from "../../answered.ts";
import { command } from "../../command.ts";
import { connect } from "../../context.ts";
import { siteId } from "../../site.ts";
import { domainText } from "./list.ts";

export const renewDomain = command(
  "renew",
  "Obtain a domain's certificate now, or renew one that is due",
  "renewDomain",
)
  .argument("<domain>")
  .action(async (name) => answered("renewDomain", { id: await siteId(await connect()), name }, domainText));
