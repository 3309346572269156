import { tryGetContext } from "hono/context-storage";
import type { AppEnv } from "../../app-env.ts";

/** Why operators have suspended the account whose pages these are; null: they have not. */
export const suspendedFor = (): string | null =>
  tryGetContext<AppEnv>()?.get("viewer")?.suspended?.reason ?? null;
