import type { Handler } from "../host.ts";
import { containersOf, stopGraceSeconds } from "./release.ts";

/** Nobody is sent to the site any more, then its containers stop; they stay, with their logs. */
export const stopSite: Handler<"site.stop"> = async (host, { siteId, hostnames, notice }) => {
  await host.ingress.park(siteId, hostnames, notice);
  const running = (await containersOf(host, siteId)).filter((container) => container.running);
  await Promise.all(running.map(({ id }) => host.engine.stopContainer(id, stopGraceSeconds)));
  return {};
};
