import { answered, paged } from "../../answered.ts";
import { command } from "../../command.ts";
import { listed } from "../../shown.ts";

export const allSites = paged(command("sites", "The sites of all accounts", "listAllSites"))
  .option("--search <text>", "in id, name, address and domains")
  .option("--status <status>", "such as FAILED")
  .option("--host <id>", "only on this host")
  .option("--account <id>", "only of this account")
  .action(({ limit, cursor, search, status, host, account }) =>
    answered(
      "listAllSites",
      { limit, cursor, search, status: status as "FAILED" | undefined, hostId: host, accountId: account },
      listed("name", "status", "accountEmail", "hostName", "url", "paidUntil", "id"),
    ),
  );

export const allDatabases = paged(command("databases", "The databases of all accounts", "listAllDatabases"))
  .option("--search <text>", "in id and name")
  .option("--status <status>", "such as FAILED")
  .option("--host <id>", "only on this host")
  .option("--account <id>", "only of this account")
  .action(({ limit, cursor, search, status, host, account }) =>
    answered(
      "listAllDatabases",
      { limit, cursor, search, status: status as "FAILED" | undefined, hostId: host, accountId: account },
      listed("name", "type", "status", "accountEmail", "hostName", "diskMb", "backupsFailingSince", "id"),
    ),
  );

export const allInvoices = paged(command("invoices", "The invoices of all accounts", "listAllInvoices"))
  .option("--search <text>", "in id, resource and address of the account")
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
  .option("--account <id>", "only of this account")
  .action(({ limit, cursor, resource, actor, account }) =>
    answered(
      "listAllActivity",
      { limit, cursor, resource, actor: actor as "key" | undefined, accountId: account },
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
