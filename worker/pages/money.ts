export const money = (cents: number, currency: string): string =>
  new Intl.NumberFormat("en-US", { style: "currency", currency }).format(cents / 100);

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/** A day in UTC, as nobody can misread it: 25 Dec 2026. */
export const day = (iso: string): string =>
  `${Number(iso.slice(8, 10))} ${months[Number(iso.slice(5, 7)) - 1] ?? ""} ${iso.slice(0, 4)}`;

/** `includes 19% VAT`: the label of a tax's part of an amount. */
export const taxText = ({ name, percent }: { name: string; percent: number }): string =>
  `includes ${percent}% ${name}`;
