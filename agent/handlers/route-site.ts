import type { Handler } from "./handler.ts";

/** Routes other names to the same container, or to the page of a stopped site. */
export const routeSite: Handler<"site.route"> = async ({ ingress }, { siteId, hostnames }) => {
  await ingress.rename(siteId, hostnames);
  return {};
};
