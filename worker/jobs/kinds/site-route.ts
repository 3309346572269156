import { ending, siteOf, type Kind } from "./kind.ts";
import { hostnamesOf, ingressOf, readAt } from "./run-spec.ts";

export const siteRoute: Kind<"site.route"> = {
  args(ctx, material) {
    const site = siteOf(material);
    return {
      siteId: site.id,
      hostnames: hostnamesOf(ctx, site, material.domains),
      ingress: ingressOf(site, material.domains),
      ...readAt(material.job),
    };
  },
  succeeded: () => ending({}),
  failed: () => ending({}),
};
