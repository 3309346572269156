import { createHmac } from "node:crypto";

/** 24 bytes, the least that https://www.standardwebhooks.com recommends. */
export const secretBytes = 24;
const prefix = "whsec_";

export const webhookSecret = (random: Uint8Array): string => prefix + Buffer.from(random).toString("base64");

/** The headers of a message (https://www.standardwebhooks.com). @param id the same for every attempt */
export function webhookHeaders(
  secret: string,
  { id, at, body }: { id: string; at: Date; body: string },
): Record<string, string> {
  const timestamp = String(Math.floor(at.getTime() / 1000));
  const key = Buffer.from(secret.slice(prefix.length), "base64");
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": `v1,${signature}` };
}
