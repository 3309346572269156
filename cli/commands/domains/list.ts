import type { Answer } from "../../../client/index.ts";
import { command } from "../../command.ts";
import { connect } from "../../context.ts";
import { findSite } from "../../site.ts";
import { bold, dim, fields, safe, showValue, status } from "../../terminal.ts";

export const listDomains = command("list", "A site's own domains, and what to set for them", {
  words: "`{data: Domain[]}`",
})
  .argument("[site]", "name or id")
  .action(async (named) => {
    const { domains } = await findSite(await connect(), named);
    showValue({ data: domains }, ({ data }) =>
      data.length === 0
        ? dim("No domains. Add one with `berth domains add www.example.com`.")
        : data.map(domainText).join("\n\n"),
    );
  });

type Domain = Answer<"getSite">["domains"][number];

/** What the owner sets at the domain's DNS. */
export const domainText = (one: Domain): string =>
  [
    `${bold(safe(one.domain))}  ${status(one.status)}`,
    fields(
      one.status !== "PENDING_VERIFICATION"
        ? { Address: `CNAME ${safe(one.target)}` }
        : {
            "1. prove it": `${one.record.type} ${safe(one.record.name)} = ${safe(one.record.value)}`,
            "2. point it": `CNAME ${safe(one.domain)} → ${safe(one.target)}`,
            "3. check": `berth domains verify ${safe(one.domain)}`,
          },
    ),
    ...one.problems.map(({ message }) => `  ${safe(message)}`),
  ].join("\n");
