import { answered } from "../../answered.ts";
import { command, group } from "../../command.ts";
import { fieldsFrom, pairsHelp } from "../../pairs.ts";

const showBilling = command("show", "How you appear on your next invoices", "getBillingDetails").action(() =>
  answered("getBillingDetails", {}),
);

const set = command(
  "set",
  "Change name, address, country or vatId on your next invoices",
  "patchBillingDetails",
)
  .argument("<field=value...>", pairsHelp)
  .action((pairs) => answered("patchBillingDetails", fieldsFrom(pairs)));

export const billing = group("billing", "The buyer on your invoices", [showBilling, set]);
