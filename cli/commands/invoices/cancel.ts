import { answered } from "../../answered.ts";
import { command } from "../../command.ts";
import { confirmed } from "../../context.ts";
import { safe } from "../../terminal.ts";

export const cancelInvoice = command(
  "cancel",
  "Cancel an unpaid invoice; what was never paid for is deleted with it",
  "cancelInvoice",
)
  .argument("<invoice>", "id")
  .action(async (id) => {
    await confirmed(`Cancel ${safe(id)}?`);
    await answered("cancelInvoice", { id }, ({ status }) => `The invoice is ${status}.`);
  });
