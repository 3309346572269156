import { sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import { applyChange, dropChange } from "../terms/apply-change.ts";
import { termedOf } from "../../db/resource.ts";
import { effect, type EffectOf, type Undone } from "./effect.ts";

/** The larger pack takes effect at once; containers are restarted with its limits. */
export const paidChange: EffectOf = (ctx, { id, resourceId, packId }, mark) => {
  const kind = termedOf(resourceId);
  if (!kind) throw new Error(`The resource of invoice ${id} has no pack`);
  const isPaid = sql`r.next_pack_id = ${packId} AND EXISTS (SELECT 1 FROM invoices WHERE settlement_mark = ${mark})`;
  return effect(
    { change: applyChange(ctx, kind, resourceId as Id<"site"> | Id<"database">, mark, isPaid) },
    () => ctx.hosts.wake(null),
  );
};

/** The larger pack was not paid for: its reservation is released. */
export const voidedChange: Undone = (ctx, { resourceId, packId }, mark) => {
  const kind = termedOf(resourceId);
  const isVoid = sql`r.next_pack_id = ${packId} AND EXISTS (SELECT 1 FROM invoices WHERE settlement_mark = ${mark})`;
  return kind === null || resourceId === null ? [] : [dropChange(ctx, kind, resourceId, isVoid)];
};
