import { command, whole } from "../../command.ts";
import { connect, connection, signal } from "../../context.ts";
import { Failure, exitCodes } from "../../failure.ts";
import { show, spin, styled } from "../../terminal.ts";
import { setTimeout as delay } from "node:timers/promises";

export const waitForInvoice = command(
  "wait",
  "Wait until an invoice is paid; exits with 7 if it is not in time",
  "getInvoice",
)
  .argument("<invoice>", "id")
  .option("--timeout <seconds>", "how long", whole, 1800)
  .action(async (id, { timeout }) => {
    const client = await connect();
    const end = performance.now() + timeout * 1000;
    const spinner = spin("Waiting for the payment …");
    try {
      for (;;) {
        const invoice = await client.call("getInvoice", { id }, { signal });
        if (invoice.status === "paid") {
          spinner.stop();
          show("getInvoice", invoice, () => `${styled("green", "✓")} Paid.`);
          return;
        }
        if (invoice.status !== "unpaid" || performance.now() > end)
          throw new Failure(
            invoice.status === "unpaid"
              ? "The invoice is not paid yet."
              : `The invoice is ${invoice.status}.`,
            {
              exitCode: exitCodes.paymentNeeded,
              ...(invoice.status === "unpaid" && {
                hint: `Pay it at ${connection().url}/invoice/${invoice.token}`,
              }),
            },
          );
        await delay(2000, undefined, { signal });
      }
    } finally {
      spinner.stop();
    }
  });
