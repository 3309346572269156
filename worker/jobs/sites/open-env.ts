import type { EnvEntry } from "../../../protocol/agent/jobs.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";

/** Decrypts the values of the site's secret variables. */
export const envOpener =
  (ctx: Ctx, siteId: Id<"site">) =>
  ({ key, value }: Pick<EnvEntry, "key" | "value">): string =>
    ctx.secrets.open(value, `site_env:${siteId}:${key}`);
