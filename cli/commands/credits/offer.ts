import { answered, paged } from "../../answered.ts";
import { command, whole } from "../../command.ts";
import { fieldsFrom } from "../../pairs.ts";
import { listed } from "../../shown.ts";

export const allPackages = paged(
  command(
    "all-packages",
    "All credit packages, including inactive ones, for operators",
    "listAllCreditPackages",
  ),
).action(({ limit, cursor }) =>
  answered(
    "listAllCreditPackages",
    { limit, cursor },
    listed("name", "credits", "amountCents", "currency", "active", "id"),
  ),
);

export const createPackage = command(
  "create-package",
  "Create a credit package, as an operator",
  "createCreditPackage",
)
  .argument("<name>")
  .argument("<credits>", "how many", whole)
  .argument("<cents>", "its price", whole)
  .action((name, credits, amountCents) => answered("createCreditPackage", { name, credits, amountCents }));

export const setPackage = command(
  "set-package",
  "Change a credit package, as an operator",
  "patchCreditPackage",
)
  .argument("<package>", "id")
  .argument("<field=value...>", "name, credits, amountCents, active")
  .action((id, pairs) => answered("patchCreditPackage", { ...fieldsFrom(pairs), id }));
