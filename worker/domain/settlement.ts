/** What a payment processor has received; `reference` is unique to the payment. */
export type PaymentReport = { reference: string; amountCents: number; currency: string };
