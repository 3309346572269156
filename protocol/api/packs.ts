import * as z from "zod";

export const Pack = z
  .object({
    id: z.string(),
    kind: z.enum(["site", "database"]),
    name: z.string(),
    /** Per month. */
    amountCents: z.number().int(),
    currency: z.string(),
    memoryMb: z.number().int(),
    cpuMilli: z.number().int(),
    diskGb: z.number().int(),
  })
  .meta({ id: "Pack" });
export type Pack = z.infer<typeof Pack>;
