import * as z from "zod";
import { nameOf, text } from "./common.ts";

export const DeviceStart = z.strictObject({
  clientName: nameOf(100).optional().describe("The client's name, shown to the person who approves."),
});
export type DeviceStart = z.infer<typeof DeviceStart>;

/** Snake case per RFC 8628, section 3.2. */
export const DeviceStarted = z
  .object({
    device_code: z.string(),
    user_code: z.string(),
    verification_url: z.string(),
    expires_in: z.number().int().describe("Seconds."),
    interval: z.number().int().describe("Seconds between polls."),
  })
  .meta({ id: "DeviceStarted" });
export type DeviceStarted = z.infer<typeof DeviceStarted>;

export const DevicePolled = z
  .discriminatedUnion("status", [
    z.object({ status: z.literal("pending") }),
    /** A permanent API key, returned once. */
    z.object({ status: z.literal("approved"), token: z.string() }),
  ])
  .meta({ id: "DevicePolled" });
export type DevicePolled = z.infer<typeof DevicePolled>;

export const DevicePollQuery = z.strictObject({ code: text.min(1).max(200) });
export type DevicePollQuery = z.infer<typeof DevicePollQuery>;
