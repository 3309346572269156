import { BadSignature, type Payments, type Session } from "./payments.ts";

type Row = {
  id: string;
  invoice_id: string;
  amount_cents: number;
  currency: string;
  status: "open" | "complete" | "expired";
  return_url: string;
  expires_at: number;
};

/**
 * The embedded test processor: it keeps sessions in its own table, shows a page at our own address and moves no money.
 */
export function testPayments(db: D1Database, siteUrl: string, now: () => Date) {
  const find = (id: string) => db.prepare("SELECT * FROM test_sessions WHERE id = ?").bind(id).first<Row>();
  const end = (id: string, status: "complete" | "expired") =>
    db
      .prepare("UPDATE test_sessions SET status = ? WHERE id = ? AND status = 'open' AND expires_at > ?")
      .bind(status, id, now().getTime())
      .run();
  const session = async (id: string): Promise<Session> => {
    const row = await find(id);
    if (!row) throw new Error(`There is no test session ${id}`);
    const isOver = row.status === "open" && row.expires_at <= now().getTime();
    const status = row.status === "complete" ? "paid" : isOver ? "expired" : row.status;
    return {
      id,
      url: status === "open" ? `${siteUrl}/test-payments/${id}` : null,
      status,
      isLive: false,
      invoiceId: row.invoice_id,
      paymentReference: status === "paid" ? id : null,
      amountCents: row.amount_cents,
      currency: row.currency,
    };
  };
  return {
    name: "test",
    isLive: false,
    async createCheckout({ id, invoiceId, amountCents, currency, returnUrl, expiresAt }) {
      await db
        .prepare(
          "INSERT INTO test_sessions (id, invoice_id, amount_cents, currency, return_url, status, expires_at) VALUES (?, ?, ?, ?, ?, 'open', ?) ON CONFLICT DO NOTHING",
        )
        .bind(`test_${id}`, invoiceId, amountCents, currency, returnUrl, expiresAt.getTime())
        .run();
      return session(`test_${id}`);
    },
    retrieve: session,
    async expire(id) {
      await end(id, "expired");
      return session(id);
    },
    refund: ({ id }) => Promise.resolve({ reference: `test_${id}`, status: "done", error: null }),
    readEvent: () => Promise.reject(new BadSignature("The test processor sends no events")),
    // Its state is part of the database, and is restored with it.
    eventsBetween: null,
    check: () => Promise.resolve([]),
    async payAtOnce(id) {
      await end(id, "complete");
    },
  } satisfies Payments;
}
