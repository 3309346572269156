import { group } from "../../command.ts";
import { allActivity, allDatabases, allInvoices, allSites, failingBackups } from "./lists.ts";
import {
  flaggedPayments,
  previewRefund,
  refundInvoice,
  resolvePayment,
  verifyLedger,
  voidInvoice,
} from "./money.ts";
import { checkPayments, dns, overview, rotateSecrets, system, testMail } from "./system.ts";

export const operator = group("operator", "What an operator sees and does across all accounts", [
  overview,
  system,
  dns,
  testMail,
  checkPayments,
  rotateSecrets,
  allSites,
  allDatabases,
  allInvoices,
  voidInvoice,
  previewRefund,
  refundInvoice,
  flaggedPayments,
  resolvePayment,
  verifyLedger,
  allActivity,
  failingBackups,
]);
