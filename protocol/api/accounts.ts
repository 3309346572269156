import * as z from "zod";
import { accountPlans, accountRoles } from "../states.ts";
import { listQuery, Timestamp } from "./common.ts";

export const Account = z
  .object({
    id: z.string(),
    name: z.string(),
    email: z.string(),
    role: z.enum(accountRoles),
    plan: z.enum(accountPlans),
    createdAt: Timestamp,
  })
  .meta({ id: "Account" });
export type Account = z.infer<typeof Account>;

/** The caller's own account, and the key that the request was made with; null for a session. */
export const OwnAccount = Account.extend({
  key: z.object({ id: z.string(), name: z.string() }).nullable(),
}).meta({ id: "OwnAccount" });
export type OwnAccount = z.infer<typeof OwnAccount>;

export const AccountListQuery = listQuery("account").extend({
  email: z.string().max(254).optional().describe("Only the account with this email address."),
});
export type AccountListQuery = z.infer<typeof AccountListQuery>;

export const AccountPatch = z
  .strictObject({ role: z.enum(accountRoles).optional(), plan: z.enum(accountPlans).optional() })
  .refine((patch) => Object.keys(patch).length > 0, "name at least one field to change")
  .meta({ id: "AccountPatch" });
export type AccountPatch = z.infer<typeof AccountPatch>;
