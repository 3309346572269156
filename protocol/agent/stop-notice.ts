import * as z from "zod";

/** Why the site is stopped, for its placeholder page, if its owner did not stop it. */
export const StopNotice = z.object({
  reason: z.literal("suspended"),
  /** Where to pay to resume the site; null: nothing is payable now. */
  payUrl: z.url({ protocol: /^https?$/ }).nullable(),
});
export type StopNotice = z.infer<typeof StopNotice>;
