import { command } from "../../command.ts";
import { connect, connection, signal } from "../../context.ts";
import { bold, fields, link, money, safe, show, status } from "../../terminal.ts";

export const showInvoice = command("show", "One invoice and where to pay it", "getInvoice")
  .argument("<invoice>", "id")
  .action(async (id) => {
    const client = await connect();
    show("getInvoice", await client.call("getInvoice", { id }, { signal }), (one) =>
      fields({
        Invoice: one.id,
        Status: status(one.status),
        Lines: one.lines
          .map(({ description, amountCents }) => `${safe(description)}  ${money(amountCents, one.currency)}`)
          .join("\n"),
        Total: bold(money(one.amountCents, one.currency)),
        Due: one.status === "unpaid" ? one.dueAt.slice(0, 10) : null,
        Paid: one.paidAt && one.paidAt.slice(0, 10),
        Page: link(`${connection().url}/invoice/${one.token}`),
      }),
    );
  });
