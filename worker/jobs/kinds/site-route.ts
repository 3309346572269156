import { ending, siteOf, type Kind } from "./kind.ts";
import { hostnamesOf } from "./run-spec.ts";

export const siteRoute: Kind<"site.route"> = {
  args(ctx, material) {
    const site = siteOf(material);
    return {
      siteId: site.id,
      hostnames: hostnamesOf(ctx, site, material.domains),
      ingress: site.ingress,
    };
  },
  succeeded: () => ending({}),
  failed: () => ending({}),
};
