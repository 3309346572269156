import * as z from "zod";
import { billingTermsMonths } from "../states.ts";
import { AmountCents, text } from "./common.ts";

const term = z.object({
  months: z.number().int(),
  discountPercent: z.number().int(),
  amountCents: z.number().int().describe("For the whole term."),
});

export const Pack = z
  .object({
    id: z.string(),
    kind: z.enum(["site", "database"]),
    name: z.string(),
    amountCents: z.number().int().describe("Per month."),
    currency: z.string(),
    terms: z.array(term).describe("The price of each billing term."),
    memoryMb: z.number().int(),
    cpuMilli: z.number().int(),
    diskGb: z.number().int(),
  })
  .meta({ id: "Pack" });
export type Pack = z.infer<typeof Pack>;

export const PackForOperator = Pack.extend({ pids: z.number().int(), active: z.boolean() }).meta({
  id: "PackForOperator",
});
export type PackForOperator = z.infer<typeof PackForOperator>;

const packId = text.min(1).max(100);

/**
 * Changes the pack of a site or database. An upgrade takes effect once the rest of the term is paid; any other change,
 * and any while a renewal is open, at the next renewal.
 */
export const PackChange = z.strictObject({
  packId,
  billingTerm: z
    .literal([...billingTermsMonths])
    .optional()
    .describe(
      "Takes effect at the next renewal. Default: the term that was chosen before, or none with the current pack, which cancels any scheduled change.",
    ),
});
export type PackChange = z.infer<typeof PackChange>;

export const NextBillingTerm = z
  .number()
  .int()
  .nullable()
  .describe("The months of the next term; null: as many as now.");

export const BillingDay = z
  .number()
  .int()
  .nullable()
  .describe(
    "The day of the month on which its terms end, or the last of a shorter month; null: not paid yet.",
  );

export const PackChanged = z
  .object({
    id: z.string(),
    packId: z.string().describe("The current pack."),
    nextPackId: z.string().nullable().describe("The pack that replaces it later; null if none."),
    nextBillingTerm: NextBillingTerm,
    takesEffect: z
      .enum(["now", "on_payment", "at_renewal", "never"])
      .describe("`never`: pack and term stay, and any scheduled change is cancelled."),
    invoiceToken: z.string().nullable().describe("The invoice to pay first, for the change or the renewal."),
    invoiceId: z.string().nullable(),
    amountCents: z.number().int().nullable(),
  })
  .meta({ id: "PackChanged" });
export type PackChanged = z.infer<typeof PackChanged>;

const percent = z.number().int().min(0).max(90).optional();
const fields = {
  name: text.trim().min(1).max(100),
  amountCents: AmountCents.describe("Per month."),
  discounts: z
    .strictObject(
      Object.fromEntries(billingTermsMonths.map((months) => [`${months}`, percent])) as Record<
        `${(typeof billingTermsMonths)[number]}`,
        typeof percent
      >,
    )
    .describe("Discount in percent by billing term in months."),
  memoryMb: z.number().int().min(64).max(1_048_576),
  cpuMilli: z.number().int().min(50).max(256_000),
  pids: z.number().int().min(16).max(65_536),
  diskGb: z.number().int().min(1).max(65_536),
};

export const PackCreate = z.strictObject({
  ...fields,
  kind: z.enum(["site", "database"]),
  discounts: fields.discounts.default({}),
  pids: fields.pids.default(512),
  active: z.boolean().default(true),
});
export type PackCreate = z.infer<typeof PackCreate>;

export const PackPatch = z
  .strictObject({ ...fields, active: z.boolean() })
  .partial()
  .refine((patch) => Object.keys(patch).length > 0, "name at least one field to change");
export type PackPatch = z.infer<typeof PackPatch>;
