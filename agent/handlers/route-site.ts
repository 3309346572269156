import type { Handler } from "./handler.ts";

/** Routes other names to the same container, or to the page of a stopped site, and changes what the ingress does for them. */
export const routeSite: Handler<"site.route"> = async ({ ingress }, { siteId, ...told }) => {
  await ingress.tell(siteId, told);
  return {};
};
