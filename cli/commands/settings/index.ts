import { answered } from "../../answered.ts";
import { command, group } from "../../command.ts";
import { fieldsFrom, pairsHelp } from "../../pairs.ts";

const showSettings = command(
  "show",
  "The brand of the service, and the seller on its invoices",
  "getSettings",
).action(() => answered("getSettings", {}));

const set = command(
  "set",
  "Change brand and seller: berth settings set brand.name=Acme seller.vatId=null",
  "patchSettings",
)
  .argument("<field=value...>", pairsHelp)
  .action((pairs) => answered("patchSettings", fieldsFrom(pairs)));

export const settings = group("settings", "How the service presents itself, for operators", [
  showSettings,
  set,
]);
