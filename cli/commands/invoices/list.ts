import { command, whole } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { dim, money, safe, show, status, table, when } from "../../terminal.ts";

export const listInvoices = command("list", "Your invoices, newest first", "listInvoices")
  .option("--limit <n>", "how many", whole, 30)
  .action(async ({ limit }) => {
    const client = await connect();
    show("listInvoices", await client.call("listInvoices", { limit }, { signal }), ({ data }) =>
      table(
        data,
        {
          status: (one) => status(one.status),
          amount: ({ amountCents, currency }) => money(amountCents, currency),
          for: ({ lines }) => safe(lines[0]?.description ?? ""),
          due: ({ dueAt, status: word }) => (word === "unpaid" ? when(dueAt) : ""),
          id: ({ id }) => dim(id),
        },
        "No invoices.",
      ),
    );
  });
