import { keepSuspendedDays, stopsAt, warnDays } from "./terms.ts";
import { dayOf } from "./times.ts";

export type Occasion = "issued" | "ended" | "suspended" | "deletion";
type About = {
  what: "site" | "database";
  name: string;
  paidUntil: Date;
  payUrl: string | null;
  price?: string;
  /** When its invoice was issued, from which the grace counts if that was after the end. */
  issuedAt?: Date;
};

/** The mails to the owner about the end of a term. */
export function termMail(occasion: Occasion, about: About): { subject: string; text: string } {
  const { what, name, paidUntil, payUrl, price, issuedAt = paidUntil } = about;
  const pay = payUrl === null ? "" : `\n\nPay here, without signing in:\n${payUrl}`;
  const named = `Your ${what} ${name}`;
  switch (occasion) {
    case "issued":
      return {
        subject: `Renew ${name} by ${dayOf(paidUntil)}`,
        text: `${named} is paid for until ${dayOf(paidUntil)}. This invoice${price ? ` for ${price}` : ""} renews it.${pay}\n\nTo cancel, delete the ${what}, or let the invoice lapse.`,
      };
    case "ended":
      return {
        subject: `The term of ${name} has ended`,
        text: `${named} was paid for until ${dayOf(paidUntil)}. It keeps running until ${dayOf(stopsAt(paidUntil, issuedAt))}. If it is not paid for by then, it is stopped and its data is kept.${pay}`,
      };
    case "suspended":
      return {
        subject: `${name} is suspended`,
        text: `${named} was paid for until ${dayOf(paidUntil)} and has been stopped. Its data is kept for ${keepSuspendedDays} days. It starts again automatically when the invoice is paid.${pay}`,
      };
    case "deletion":
      return {
        subject: `${name} will be deleted in ${warnDays} days`,
        text: `${named} has been suspended because its invoice was not paid. In ${warnDays} days it will be permanently deleted with all its data. If the invoice is paid before then, it starts again automatically.${pay}`,
      };
  }
}
