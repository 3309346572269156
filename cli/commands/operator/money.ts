import { answered, paged } from "../../answered.ts";
import { command } from "../../command.ts";
import { confirmed, connect, signal } from "../../context.ts";
import { exitCodes } from "../../failure.ts";
import { shown, listed } from "../../shown.ts";
import { safe, show } from "../../terminal.ts";

export const voidInvoice = command(
  "void",
  "Void an invoice so that it can no longer be paid; a renewal is issued anew",
  "voidInvoice",
)
  .argument("<invoice>", "id")
  .action(async (id) => {
    await confirmed(`Void ${safe(id)}?`);
    await answered("voidInvoice", { id });
  });

export const previewRefund = command(
  "preview-refund",
  "What a refund of an invoice would do",
  "previewRefund",
)
  .argument("<invoice>", "id")
  .action((id) => answered("previewRefund", { id }));

export const refundInvoice = command("refund", "Refund a paid invoice in full", "refundInvoice")
  .argument("<invoice>", "id")
  .option("--force", "even if purchased credits are spent already")
  .action(async (id, { force }) => {
    await confirmed(`Refund ${safe(id)}?`);
    await answered("refundInvoice", { id, ...(force && { force }) });
  });

export const flaggedPayments = paged(
  command("flagged-payments", "Payments that match no invoice or need attention", "listPaymentFlags"),
)
  .option("--resolved", "those that are resolved")
  .action(({ limit, cursor, resolved }) =>
    answered(
      "listPaymentFlags",
      { limit, cursor, ...(resolved && { resolved: "1" as const }) },
      listed("reason", "amountCents", "currency", "reference", "invoiceId", "createdAt", "id"),
    ),
  );

export const resolvePayment = command(
  "resolve-payment",
  "Mark a flagged payment as resolved",
  "resolvePaymentFlag",
)
  .argument("<flag>", "id")
  .argument("<resolution>", "how it was resolved")
  .action((id, resolution) => answered("resolvePaymentFlag", { id, resolution }));

export const verifyLedger = command(
  "verify-ledger",
  "Recompute the whole ledger; exits with 1 if it does not agree",
  "verifyLedger",
).action(async () => {
  const found = await (await connect()).call("verifyLedger", {}, { signal });
  show("verifyLedger", found, shown);
  if (!found.ok) process.exitCode = exitCodes.failure;
});
