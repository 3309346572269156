import type { Handler } from "./handler.ts";

/** The same container, or the page of a stopped site, under other names. */
export const routeSite: Handler<"site.route"> = async ({ ingress }, { siteId, hostnames }) => {
  await ingress.rename(siteId, hostnames);
  return {};
};
