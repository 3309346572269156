import { paged } from "../../answered.ts";
import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { dim, money, paginated, safe, show, status, table, when } from "../../terminal.ts";

export const listInvoices = paged(command("list", "Your invoices, newest first", "listInvoices"), 30).action(
  async ({ limit, cursor }) => {
    const client = await connect();
    show(
      "listInvoices",
      await client.call("listInvoices", { limit, cursor }, { signal }),
      ({ data, nextCursor }) =>
        paginated(
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
          nextCursor,
        ),
    );
  },
);
