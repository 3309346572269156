import * as z from "zod";
import { keyOrigins } from "../states.ts";
import { nameOf, secondFactorCode, Timestamp } from "./common.ts";

export const KeyCreate = z.strictObject({ name: nameOf(100), code: secondFactorCode });
export type KeyCreate = z.infer<typeof KeyCreate>;

export const Key = z
  .object({
    id: z.string(),
    name: z.string(),
    start: z.string().describe("The first characters, to identify the key."),
    origin: z
      .enum(keyOrigins)
      .describe(
        "device: approved for the command line. mcp: approved for an MCP client, valid for `/mcp` only.",
      ),
    createdAt: Timestamp,
    lastUsedAt: Timestamp.nullable(),
  })
  .meta({ id: "Key" });
export type Key = z.infer<typeof Key>;

export const KeyCreated = Key.extend({
  key: z.string().optional().describe("Shown once: a replay under the same Idempotency-Key omits it."),
}).meta({ id: "KeyCreated" });
export type KeyCreated = z.infer<typeof KeyCreated>;

export const KeyRevoked = z.object({ id: z.string(), revoked: z.literal(true) });
export type KeyRevoked = z.infer<typeof KeyRevoked>;
