import type { Answer } from "../../../client/index.ts";
import { command } from "../../command.ts";
import { connect, nextCommand, signal } from "../../context.ts";
import { siteId } from "../../site.ts";
import { bold, dim, fields, safe, show, status, styled } from "../../terminal.ts";

export const listDomains = command(
  "list",
  "A site's custom domains: what to set for them, and what is wrong",
  "listDomains",
)
  .argument("[site]", "name or id")
  .action(async (named) => {
    const client = await connect();
    show(
      "listDomains",
      await client.call("listDomains", { id: await siteId(client, named) }, { signal }),
      ({ data }) =>
        data.length === 0
          ? dim(`No domains. Add one with \`${nextCommand("domains add www.example.com", named)}\`.`)
          : data.map((one) => domainText(one, named)).join("\n\n"),
    );
  });

/** What the owner sets at the domain's DNS, and what is wrong. */
export const domainText = (one: Answer<"getDomain">, named?: string): string =>
  [
    `${bold(safe(one.displayName))}  ${status(one.status)}`,
    fields({
      "Prove it":
        one.verifiedAt === null
          ? `${one.record.type} ${safe(one.record.name)} = ${safe(one.record.value)}`
          : null,
      "Point it":
        one.status === "ACTIVE"
          ? null
          : `CNAME, or ALIAS/A at the root of a zone: ${safe(one.domain)} → ${safe(one.target)}`,
      "Redirects to": one.redirectTo && safe(one.redirectTo),
      Certificate: one.certificate?.notAfter ? `until ${one.certificate.notAfter.slice(0, 10)}` : null,
      Problems: one.problems.map(({ message }) => styled("yellow", safe(message))).join("\n"),
      Check: one.status === "ACTIVE" ? null : nextCommand(`domains verify ${safe(one.domain)} --wait`, named),
    }),
  ].join("\n");
