import type { Handler } from "../host.ts";

/** The same container, or the page of a stopped site, under other names. */
export const routeSite: Handler<"site.route"> = async ({ ingress }, { siteId, hostnames }) => {
  const current = ingress.current(siteId);
  if (current === "parked") await ingress.park(siteId, hostnames);
  else if (current) await ingress.route(siteId, hostnames, current);
  return {};
};
