import * as z from "zod";

/** Creates the first account, an operator, and its first API key. */
export const Setup = z.strictObject({
  email: z.email().max(254),
  password: z.string().min(12).max(200),
  name: z.string().min(1).max(100),
});
export type Setup = z.infer<typeof Setup>;

export const SetupDone = z.object({ accountId: z.string(), apiKey: z.string() });
