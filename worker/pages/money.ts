export const money = (cents: number, currency: string): string =>
  new Intl.NumberFormat("en-US", { style: "currency", currency }).format(cents / 100);

/** `includes 19% VAT`: the label of a tax's part of an amount. */
export const taxText = ({ name, percent }: { name: string; percent: number }): string =>
  `includes ${percent}% ${name}`;
