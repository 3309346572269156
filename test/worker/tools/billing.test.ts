import { expect } from "vitest";
import type { Page } from "../../../protocol/api/common.ts";
import type { CreditPackage } from "../../../protocol/api/credits.ts";
import type { Invoice } from "../../../protocol/api/invoices.ts";
import type { PackForOperator } from "../../../protocol/api/packs.ts";
import { effectsOf, funded, scene, useTool } from "../assistant.ts";
import { api, createSite, operator, pay, runningSite, siteUrl } from "../service.ts";

const tokenIn = (payAt: unknown): string => String(payAt).split("/invoice/")[1] ?? "";
const invoicesOf = async (key: string) => (await api<Page<Invoice>>(key, "GET", "/invoices")).body.data;

effectsOf("billing", {
  cancel_invoice: [
    "voids it after a yes, and the site that waits for it goes with it",
    async () => {
      const key = await funded();
      const { siteId, invoiceId } = await createSite(key, { name: "mistaken" });
      const { asked } = await useTool(key, "cancel_invoice", { invoice: invoiceId });
      expect(asked).toContain("The site that waits for it is deleted");
      expect((await api(key, "GET", `/sites/${siteId}`)).status).toBe(404);
    },
  ],
  list_packs: [
    "lists what can be bought with prices, by kind, and without one credits as well",
    async () => {
      const key = await funded();
      const { result } = await useTool(key, "list_packs", { kind: "database" });
      const packs = result as { kind: string; amountCents: number }[];
      expect(packs.length).toBeGreaterThan(0);
      expect(packs.every(({ kind, amountCents }) => kind === "database" && amountCents > 0)).toBe(true);
      const all = (await useTool(key, "list_packs", {})).result as { kind?: string; credits?: number }[];
      expect(new Set(all.map(({ kind, credits = 0 }) => kind ?? credits > 0))).toEqual(
        new Set(["site", "database", true]),
      );
    },
  ],
  list_invoices: [
    "shows where unpaid ones are paid",
    async () => {
      const key = await funded();
      const { invoiceId, invoiceToken } = await createSite(key);
      const { result } = await useTool(key, "list_invoices", {});
      expect(result).toMatchObject([
        { id: invoiceId, status: "unpaid", payAt: `${siteUrl}/invoice/${invoiceToken}` },
      ]);
    },
  ],
  get_invoice: [
    "shows lines and where it is paid, and no address once it is",
    async () => {
      const { key } = await scene();
      const { invoiceId, invoiceToken } = await createSite(key);
      const { result } = await useTool(key, "get_invoice", { invoice: invoiceId });
      expect(result).toMatchObject({ id: invoiceId, payAt: `${siteUrl}/invoice/${invoiceToken}` });
      await pay(invoiceToken);
      const paid = await useTool(key, "get_invoice", { invoice: invoiceId });
      expect(paid.result).toMatchObject({ status: "paid", payAt: null });
    },
  ],
  change_pack: [
    "invoices a larger pack, which is there once it is paid",
    async () => {
      const { key, host } = await scene();
      const { body: large } = await api<PackForOperator>(await operator(), "POST", "/packs", {
        kind: "site",
        name: "Large",
        amountCents: 90_000,
        memoryMb: 512,
        cpuMilli: 500,
        diskGb: 10,
      });
      const { siteId } = await runningSite(key, host, { name: "grows" });
      const { result } = await useTool(key, "change_pack", { site: "grows", packId: large.id });
      await pay(tokenIn((result as { payAt: string }).payAt));
      expect((await api<{ packId: string }>(key, "GET", `/sites/${siteId}`)).body.packId).toBe(large.id);
    },
  ],
  get_credit_balance: [
    "shows the balance after this message was held, and the last transactions",
    async () => {
      const key = await funded(7);
      const { result, reply } = await useTool(key, "get_credit_balance", {});
      expect(result).toMatchObject({ transactions: [{ type: "grant", amount: 7 }] });
      expect(reply.balance).toBe(7 - reply.creditsUsed);
    },
  ],
  create_credit_invoice: [
    "makes the invoice of a package, and the credits are there once it is paid",
    async () => {
      const key = await funded(7);
      const { body } = await api<Page<CreditPackage>>(null, "GET", "/credits/packages");
      const [first] = body.data;
      const { result, reply } = await useTool(key, "create_credit_invoice", { packageId: first?.id ?? "" });
      expect(await invoicesOf(key)).toMatchObject([{ kind: "credits", status: "unpaid" }]);
      await pay(tokenIn((result as { payAt: string }).payAt));
      const { balance } = (await api<{ balance: number }>(key, "GET", "/credits")).body;
      expect(balance).toBe(reply.balance + (first?.credits ?? Number.NaN));
    },
  ],
});
