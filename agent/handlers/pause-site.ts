import type { Handler } from "./handler.ts";

export const pauseSite: Handler<"site.pause"> = async ({ ingress }, { siteId, hostnames }) => {
  await ingress.park(siteId, hostnames);
  return {};
};
