import type { Pack, PackForOperator } from "../../../protocol/api/packs.ts";
import { billingTermsMonths } from "../../../protocol/states.ts";
import type { PackRow } from "../../db/rows.ts";
import { termPriceCents } from "../../domain/pricing.ts";

export const packView = (row: PackRow): Pack => ({
  id: row.id,
  kind: row.kind,
  name: row.name,
  amountCents: row.priceCents,
  currency: row.currency,
  terms: billingTermsMonths.map((months) => ({
    months,
    discountPercent: row.discounts[months] ?? 0,
    amountCents: termPriceCents(row.priceCents, months, row.discounts),
  })),
  memoryMb: row.memoryMb,
  cpuMilli: row.cpuMilli,
  diskGb: row.diskGb,
});

export const packForOperator = (row: PackRow): PackForOperator => ({
  ...packView(row),
  pids: row.pids,
  active: row.active,
});
