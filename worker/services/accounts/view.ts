import type { Account } from "../../../protocol/api/accounts.ts";
import type { accounts } from "../../db/schema.ts";
import { isoTime } from "../../domain/iso-time.ts";

export const accountView = (row: typeof accounts.$inferSelect): Account => ({
  id: row.id,
  name: row.name,
  email: row.email,
  role: row.role,
  plan: row.plan,
  suspended:
    row.suspendedAt && row.suspendedFor !== null
      ? { at: isoTime(row.suspendedAt), reason: row.suspendedFor }
      : null,
  createdAt: isoTime(row.createdAt),
});
