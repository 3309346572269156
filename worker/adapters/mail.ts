import type { Config } from "../config.ts";

type Mail = { to: string; subject: string; text: string };

export const canMail = (config: Config): boolean => config.MAIL_ENDPOINT !== undefined;

/**
 * Sends one mail through the configured service (https://resend.com/docs/api-reference/emails/send-email). @param key
 * an idempotency key, the same for every attempt to send one mail @throws if the service refuses it
 */
export async function sendMail(config: Config, mail: Mail, key?: string): Promise<void> {
  if (config.MAIL_ENDPOINT === undefined)
    throw new Error("This installation cannot send mail: set MAIL_ENDPOINT.");
  const response = await fetch(config.MAIL_ENDPOINT, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      ...(key !== undefined && { "Idempotency-Key": key }),
      ...(config.MAIL_TOKEN !== undefined && { Authorization: `Bearer ${config.MAIL_TOKEN}` }),
    },
    body: JSON.stringify({ from: config.MAIL_FROM ?? "Berth <berth@localhost>", ...mail, to: [mail.to] }),
    signal: AbortSignal.timeout(10_000),
  });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`The mail service answered ${response.status}`);
}
