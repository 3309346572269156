import * as z from "zod";
import { text, Timestamp } from "./common.ts";

export const KeyCreate = z.strictObject({ name: text.trim().min(1).max(100) });
export type KeyCreate = z.infer<typeof KeyCreate>;

export const Key = z
  .object({
    id: z.string(),
    name: z.string(),
    start: z.string().describe("The first characters, to tell it by."),
    origin: z.enum(["dashboard", "device", "setup"]),
    createdAt: Timestamp,
    lastUsedAt: Timestamp.nullable(),
  })
  .meta({ id: "Key" });
export type Key = z.infer<typeof Key>;

/** `key` is shown once. */
export const KeyCreated = Key.extend({ key: z.string() }).meta({ id: "KeyCreated" });
export type KeyCreated = z.infer<typeof KeyCreated>;
