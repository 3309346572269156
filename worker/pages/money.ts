export const money = (cents: number, currency: string): string =>
  new Intl.NumberFormat("en-US", { style: "currency", currency }).format(cents / 100);

export const day = (iso: string): string => iso.slice(0, 10);
