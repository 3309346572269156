import { group } from "../../command.ts";
import { allActivity, allDatabases, allInvoices, allSites, failingBackups } from "./lists.ts";
import { flaggedPayments, refundInvoice, resolvePayment, verifyLedger, voidInvoice } from "./money.ts";
import { dns, overview, rotateSecrets, system, testMail } from "./system.ts";

export const operator = group("operator", "What an operator sees and does across all accounts", [
  overview,
  system,
  dns,
  testMail,
  rotateSecrets,
  allSites,
  allDatabases,
  allInvoices,
  voidInvoice,
  refundInvoice,
  flaggedPayments,
  resolvePayment,
  verifyLedger,
  allActivity,
  failingBackups,
]);
