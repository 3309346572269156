import * as z from "zod";
import { billingTermsMonths } from "../states.ts";
import { AmountCents, text } from "./common.ts";

const term = z.object({
  months: z.number().int(),
  discountPercent: z.number().int(),
  amountCents: z.number().int().describe("Of the whole term."),
});

export const Pack = z
  .object({
    id: z.string(),
    kind: z.enum(["site", "database"]),
    name: z.string(),
    amountCents: z.number().int().describe("Per month."),
    currency: z.string(),
    terms: z.array(term).describe("What each billing term costs."),
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

/** Of a site or database. A dearer pack is paid for the rest of the term and comes then; any other comes with the next renewal. */
export const PackChange = z.strictObject({
  packId,
  billingTerm: z
    .literal([...billingTermsMonths])
    .optional()
    .describe("From the next renewal on."),
});
export type PackChange = z.infer<typeof PackChange>;

export const PackChanged = z
  .object({
    id: z.string(),
    packId: z.string().describe("The pack it has now."),
    nextPackId: z.string().nullable().describe("The one that follows; null: none."),
    takesEffect: z
      .enum(["now", "on_payment", "at_renewal", "never"])
      .describe("`never`: it has this pack, and no other follows any more."),
    invoiceToken: z.string().nullable().describe("Of what is to be paid first: the change, or the renewal."),
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
    .describe("Months of a term → per cent off it."),
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
  .refine((patch) => Object.keys(patch).length > 0, "nothing to change");
export type PackPatch = z.infer<typeof PackPatch>;
