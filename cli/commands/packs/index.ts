import type { Input } from "../../../client/index.ts";
import { answered, paged } from "../../answered.ts";
import { command, group } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { exitCodes, Failure } from "../../failure.ts";
import { fieldsFrom } from "../../pairs.ts";
import { listed } from "../../shown.ts";
import { listPacks } from "./list.ts";

const fieldsHelp =
  "name, amountCents (per month), memoryMb, cpuMilli, diskGb, pids, active, discounts.12=10; a new one also kind=site|database";

const all = paged(command("all", "All packs, including inactive ones, for operators", "listAllPacks")).action(
  ({ limit, cursor }) =>
    answered(
      "listAllPacks",
      { limit, cursor },
      listed("kind", "name", "amountCents", "currency", "memoryMb", "cpuMilli", "diskGb", "active", "id"),
    ),
);

const create = command("create", "Create a pack, as an operator", "createPack")
  .argument("<field=value...>", fieldsHelp)
  .action((pairs) => answered("createPack", fieldsFrom(pairs) as Input<"createPack">));

const set = command("set", "Change a pack, as an operator; prices apply to future purchases", "patchPack")
  .argument("<pack>", "id")
  .argument("<field=value...>", fieldsHelp)
  .action(async (id, pairs) => {
    const wholes = pairs.some((pair) => pair.startsWith("discounts."))
      ? { discounts: await discountsOf(id) }
      : {};
    await answered("patchPack", { ...fieldsFrom(pairs, wholes), id });
  });

/** @throws Failure if there is no such pack */
async function discountsOf(id: string): Promise<Record<number, number>> {
  for await (const pack of (await connect()).items("listAllPacks", { limit: 100 }, { signal }))
    if (pack.id === id)
      return Object.fromEntries(
        pack.terms
          .filter(({ discountPercent }) => discountPercent > 0)
          .map(({ months, discountPercent }) => [months, discountPercent]),
      );
  throw new Failure(`There is no pack ${id}.`, {
    exitCode: exitCodes.notFound,
    hint: "`berth packs all` shows them.",
  });
}

export const packs = group("packs", "Sizes and prices of sites and databases", [listPacks, all, create, set]);
