import { call } from "../call.ts";
import { AppError, invalid } from "../../domain/app-error.ts";
import { requireCancellable } from "../../services/invoices/cancel.ts";
import { asks, changeDatabase, changeSite, databaseId, payAt, siteId } from "../resources.ts";
import type { Tools } from "../tool.ts";

type Names =
  | "list_packs"
  | "list_invoices"
  | "get_invoice"
  | "cancel_invoice"
  | "change_pack"
  | "get_credit_balance"
  | "create_credit_invoice"
  | "get_account"
  | "list_api_keys"
  | "revoke_api_key"
  | "list_activity";

export const billingTools: Tools<Names> = {
  list_packs: {
    async run(ctx, { kind }) {
      const [packs, packages] = await Promise.all([
        call(ctx, "listPacks", { limit: 100 }),
        call(ctx, "listCreditPackages", { limit: 100 }),
      ]);
      if (kind === "credits") return packages.data;
      const shown = packs.data
        .filter((pack) => kind === undefined || pack.kind === kind)
        .map(({ terms, ...pack }) => ({
          ...pack,
          termsCents: Object.fromEntries(terms.map(({ months, amountCents }) => [months, amountCents])),
        }));
      return kind === undefined ? [...shown, ...packages.data] : shown;
    },
  },
  list_invoices: {
    run: async (ctx, { status, limit = 20 }) =>
      (await call(ctx, "listInvoices", { status, limit })).data.map(({ token, ...invoice }) => ({
        ...invoice,
        payAt: invoice.status === "unpaid" ? payAt(ctx, token) : null,
      })),
  },
  get_invoice: {
    async run(ctx, { invoice }) {
      const { token, ...shown } = await call(ctx, "getInvoice", { id: invoice });
      return { ...shown, payAt: shown.status === "unpaid" ? payAt(ctx, token) : null };
    },
  },
  cancel_invoice: {
    async run(ctx, { invoice }) {
      const { token: _token, ...shown } = await call(ctx, "cancelInvoice", { id: invoice });
      return shown;
    },
    async consequence(ctx, { invoice }) {
      const found = await call(ctx, "getInvoice", { id: invoice });
      requireCancellable(found);
      const { kind, lines, amountCents, currency } = found;
      const loses =
        kind === "site" || kind === "database" ? ` The ${kind} that waits for it is deleted.` : "";
      return asks(
        `Cancel the unpaid invoice of ${(amountCents / 100).toFixed(2)} ${currency.toUpperCase()} for ${lines.map(({ description }) => description).join(", ")}.${loses}`,
        invoice,
      );
    },
  },
  change_pack: {
    async run(ctx, { site, db, packId, billingTerm }) {
      if ((site === undefined) === (db === undefined)) throw invalid("site", "either site or db");
      const changed =
        site !== undefined
          ? await changeSite<"packId">(ctx, await siteId(ctx, site), { packId, billingTerm })
          : await changeDatabase<"packId">(ctx, await databaseId(ctx, db ?? ""), { packId, billingTerm });
      return { ...changed, payAt: changed.invoiceToken === null ? null : payAt(ctx, changed.invoiceToken) };
    },
  },
  get_credit_balance: { run: (ctx) => call(ctx, "getCredits", {}) },
  create_credit_invoice: {
    async run(ctx, { packageId }) {
      const created = await call(ctx, "purchaseCredits", { packageId });
      return { ...created, payAt: payAt(ctx, created.invoiceToken) };
    },
  },
  get_account: { run: (ctx) => call(ctx, "getAccount", {}) },
  list_api_keys: { run: async (ctx, { limit = 50 }) => (await call(ctx, "listKeys", { limit })).data },
  revoke_api_key: {
    run: (ctx, { key }) => call(ctx, "revokeKey", { id: key }),
    async consequence(ctx, { key }) {
      const { data } = await call(ctx, "listKeys", { limit: 100 });
      const found = data.find(({ id }) => id === key);
      if (!found) throw new AppError("not_found", { reason: `The account has no key ${key}.` });
      return asks(
        `Revoke the API key “${found.name}” (${found.start}…): requests that use it are refused at once.`,
        key,
      );
    },
  },
  list_activity: {
    run: async (ctx, { resource, since, limit = 20 }) =>
      (await call(ctx, "listActivity", { resource, since, limit, only: "changes" })).data,
  },
};
