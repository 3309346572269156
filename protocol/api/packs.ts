import * as z from "zod";
import { billingTermsMonths } from "../states.ts";
import { AmountCents } from "./common.ts";

const term = z.object({
  months: z.number().int(),
  discountPercent: z.number().int(),
  /** Of the whole term. */
  amountCents: z.number().int(),
});

export const Pack = z
  .object({
    id: z.string(),
    kind: z.enum(["site", "database"]),
    name: z.string(),
    /** Per month. */
    amountCents: z.number().int(),
    currency: z.string(),
    /** What each billing term costs. */
    terms: z.array(term),
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

const packId = z.string().min(1).max(100);

/** Of a site or database. A dearer pack is paid for the rest of the term and comes then; any other comes with the next renewal. */
export const PackChange = z.strictObject({
  packId,
  /** From the next renewal on. */
  billingTerm: z.literal([...billingTermsMonths]).optional(),
});
export type PackChange = z.infer<typeof PackChange>;

export const PackChanged = z
  .object({
    id: z.string(),
    /** The pack it has now. */
    packId: z.string(),
    /** The one that follows; null: none. */
    nextPackId: z.string().nullable(),
    /** `never`: it has this pack, and no other follows any more. */
    takesEffect: z.enum(["now", "on_payment", "at_renewal", "never"]),
    /** Of what is to be paid first: the change, or the renewal. */
    invoiceToken: z.string().nullable(),
    invoiceId: z.string().nullable(),
    amountCents: z.number().int().nullable(),
  })
  .meta({ id: "PackChanged" });
export type PackChanged = z.infer<typeof PackChanged>;

const percent = z.number().int().min(0).max(90).optional();
const fields = {
  name: z.string().trim().min(1).max(100),
  /** Per month. */
  amountCents: AmountCents,
  /** Months of a term → per cent off it. */
  discounts: z.strictObject(
    Object.fromEntries(billingTermsMonths.map((months) => [`${months}`, percent])) as Record<
      `${(typeof billingTermsMonths)[number]}`,
      typeof percent
    >,
  ),
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
