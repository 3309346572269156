import { eq } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Host } from "../../../protocol/api/hosts.ts";
import type { Ctx } from "../../ctx.ts";
import { hosts } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { hostView, selectHosts } from "./view.ts";

/** @throws AppError not_found, also for a removed host */
export async function hostNamed(ctx: Ctx, id: Id<"host">): Promise<Host> {
  const [row] = await selectHosts(ctx.db).where(eq(hosts.id, id));
  if (!row || row.status === "REMOVED") throw new AppError("not_found");
  return hostView(row);
}
