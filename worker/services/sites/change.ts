import type { ById } from "../../../protocol/api/common.ts";
import type { DomainChanged } from "../../../protocol/api/domains.ts";
import type { PackChanged } from "../../../protocol/api/packs.ts";
import type { EnvChanged, Site, SiteActionAccepted, SitePatch } from "../../../protocol/api/sites.ts";
import type { Ctx } from "../../ctx.ts";
import { changeDomain } from "../domains/change.ts";
import { changePackOfSite } from "../terms/change-pack.ts";
import { actOnSite } from "./act.ts";
import { setSiteEnv } from "./set-env.ts";
import { setSiteSettings } from "./set-settings.ts";

type Changed = EnvChanged | DomainChanged | PackChanged | Site | SiteActionAccepted;

/** Applies exactly one kind of change, as the schema ensures. */
export async function changeSite(ctx: Ctx, change: ById & SitePatch): Promise<Changed> {
  if ("action" in change) return actOnSite(ctx, change);
  if ("settings" in change) return setSiteSettings(ctx, change);
  if ("domain" in change) return changeDomain(ctx, change);
  if ("packId" in change) return changePackOfSite(ctx, change);
  return setSiteEnv(ctx, change);
}
