import { group } from "../../command.ts";
import { cancelInvoice } from "./cancel.ts";
import { listInvoices } from "./list.ts";
import { openInvoice } from "./open.ts";
import { invoicePdf } from "./pdf.ts";
import { showInvoice } from "./show.ts";
import { waitForInvoice } from "./wait.ts";

export const invoices = group("invoices", "See, pay and download invoices", [
  listInvoices,
  showInvoice,
  openInvoice,
  waitForInvoice,
  invoicePdf,
  cancelInvoice,
]);
