import * as z from "zod";
import { nameOf, text } from "./common.ts";

/** Creates the first account, an operator, and its first API key. */
export const Setup = z.strictObject({
  email: z.email().max(254),
  password: text.min(12).max(200),
  name: nameOf(100),
});
export type Setup = z.infer<typeof Setup>;

export const SetupDone = z.object({ accountId: z.string(), apiKey: z.string() });
