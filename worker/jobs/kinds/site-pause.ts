import { ending, siteOf, type Kind } from "./kind.ts";
import { hostnamesOf } from "./run-spec.ts";

export const sitePause: Kind<"site.pause"> = {
  args(ctx, material) {
    const site = siteOf(material);
    return { siteId: site.id, hostnames: hostnamesOf(ctx, site, material.domains) };
  },
  succeeded: () => ending({}),
  failed: () => ending({}),
};
