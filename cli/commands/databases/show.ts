import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { databaseId } from "../../site.ts";
import { bold, dim, fields, safe, show, status, styled } from "../../terminal.ts";

export const showDatabase = command("show", "One database", "getDatabase")
  .argument("<database>", "name or id")
  .action(async (named) => {
    const client = await connect();
    show(
      "getDatabase",
      await client.call("getDatabase", { id: await databaseId(client, named) }, { signal }),
      (one) =>
        fields({
          Database: `${bold(safe(one.name))}  ${dim(one.id)}`,
          Type: `${one.type} ${safe(one.version ?? "")}`,
          Status: status(one.status) + (one.hostOffline ? dim("  its host is offline") : ""),
          Problem: safe(one.error ?? ""),
          "Waits for": safe(one.waitsFor ?? ""),
          Notice: safe(one.notice ?? ""),
          Address: `${safe(one.host)}:${one.port}`,
          "Linked to": one.links
            .map(
              ({ siteId, variable, inService }) =>
                `${siteId} as ${safe(variable)}${inService ? "" : dim(", from its next restart or deployment")}`,
            )
            .join("\n"),
          Backups: `${one.backups.schedule ?? "on request"}, ${one.backups.keep} kept${one.backups.failing ? styled("red", `, failing: ${safe(one.backups.failing.reason)}`) : ""}`,
          Pack: one.packId,
          "Paid until":
            one.paidUntil === null ? "not paid yet (berth invoices list)" : one.paidUntil.slice(0, 10),
        }),
    );
  });
