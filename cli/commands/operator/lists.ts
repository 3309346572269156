import type { Answer, Input } from "../../../client/index.ts";
import { answered, paged } from "../../answered.ts";
import { command } from "../../command.ts";
import { connect } from "../../context.ts";
import { listed } from "../../shown.ts";
import { hostId } from "../../site.ts";

const everywhere = <Id extends "listAllSites" | "listAllDatabases">(
  name: string,
  summary: string,
  id: Id,
  human: (answer: Answer<Id>) => string,
) =>
  paged(command(name, summary, id))
    .option("--search <text>", "in id, name and, for a site, address and domains")
    .option("--status <status>", "such as FAILED")
    .option("--host <host>", "only on this host: name or id")
    .option("--account <id>", "only of this account")
    .action(async ({ limit, cursor, search, status, host, account }) => {
      const on = host && (await hostId(await connect(), host));
      const input = { limit, cursor, search, status, hostId: on, accountId: account };
      return answered(id, input as Input<Id>, human as (answer: object) => string);
    });

export const allSites = everywhere(
  "sites",
  "The sites of all accounts",
  "listAllSites",
  listed("name", "status", "accountEmail", "hostName", "url", "paidUntil", "id"),
);

export const allDatabases = everywhere(
  "databases",
  "The databases of all accounts",
  "listAllDatabases",
  listed("name", "type", "status", "accountEmail", "hostName", "diskMb", "backupsFailingSince", "id"),
);

export const allInvoices = paged(command("invoices", "The invoices of all accounts", "listAllInvoices"))
  .option("--search <text>", "in number, id, resource and the account's address")
  .option("--status <status>", "unpaid, paid, void or refunded")
  .option("--account <id>", "only of this account")
  .action(({ limit, cursor, search, status, account }) =>
    answered(
      "listAllInvoices",
      { limit, cursor, search, status: status as "paid" | undefined, accountId: account },
      listed("kind", "status", "amountCents", "currency", "accountEmail", "createdAt", "paidAt", "id"),
    ),
  );

export const allActivity = paged(command("activity", "The audit log of all accounts", "listAllActivity"))
  .option("--resource <id>", "only changes of this site, database …")
  .option("--actor <kind>", "only by session, key, assistant, operator, webhook, link, host or system")
  .option("--only <what>", "changes, or calls of the assistant's tools")
  .option("--account <id>", "only of this account")
  .action(({ limit, cursor, resource, actor, only, account }) =>
    answered(
      "listAllActivity",
      {
        limit,
        cursor,
        resource,
        actor: actor as "key" | undefined,
        only: only as "calls" | undefined,
        accountId: account,
      },
      listed("at", "actor", "operation", "accountId", "resourceId", "outcome"),
    ),
  );

export const failingBackups = paged(
  command(
    "failing-backups",
    "Databases and volumes whose scheduled backups fail, and why",
    "listFailingBackups",
  ),
).action(({ limit, cursor }) =>
  answered(
    "listFailingBackups",
    { limit, cursor },
    listed("id", "type", "since", "times", "reason", "accountId"),
  ),
);
