import { graceDays, keepSuspendedDays, warnDays } from "./terms.ts";

export type Occasion = "issued" | "ended" | "suspended" | "deletion";
type About = {
  what: "site" | "database";
  name: string;
  paidUntil: Date;
  payUrl: string | null;
  price?: string;
};

const day = (time: Date) => time.toISOString().slice(0, 10);

/** What its owner is told of the end of a term. */
export function termMail(occasion: Occasion, about: About): { subject: string; text: string } {
  const { what, name, paidUntil, payUrl, price } = about;
  const pay = payUrl === null ? "" : `\n\nPay here, without signing in:\n${payUrl}`;
  const named = `Your ${what} ${name}`;
  switch (occasion) {
    case "issued":
      return {
        subject: `Renew ${name} by ${day(paidUntil)}`,
        text: `${named} is paid for until ${day(paidUntil)}. This invoice${price ? ` over ${price}` : ""} renews it.${pay}\n\nIf you do not want to go on, delete it, or leave the invoice: it ends by itself.`,
      };
    case "ended":
      return {
        subject: `The term of ${name} is over`,
        text: `${named} was paid for until ${day(paidUntil)}. It goes on for ${graceDays} days; if it is not paid by then, it stops, and its data is kept.${pay}`,
      };
    case "suspended":
      return {
        subject: `${name} is suspended`,
        text: `${named} was paid for until ${day(paidUntil)} and has been stopped. Its data is kept for ${keepSuspendedDays} days. When the invoice is paid, it starts again by itself.${pay}`,
      };
    case "deletion":
      return {
        subject: `${name} will be deleted in ${warnDays} days`,
        text: `${named} has been suspended since its invoice was not paid. In ${warnDays} days it is deleted with all its data, for good. When the invoice is paid before that, it starts again by itself.${pay}`,
      };
  }
}
