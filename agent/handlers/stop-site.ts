import { servingOf } from "../ingress/ingress.ts";
import type { Handler } from "./handler.ts";
import { stopGraceOf } from "../docker/specs.ts";
import { containersOf } from "../sites/rollout.ts";

/**
 * Unroutes the site, then stops its containers; they are kept with their logs. If the engine cannot stop them, the
 * site keeps serving unless it is suspended.
 */
export const stopSite: Handler<"site.stop"> = async (host, { siteId, notice, ...told }) => {
  const before = servingOf(host.ingress, siteId);
  await host.ingress.park(siteId, host.ingress.newest(siteId, told), notice);
  try {
    const running = (await containersOf(host, siteId)).filter((container) => container.running);
    await Promise.all(running.map(({ id, labels }) => host.engine.stopContainer(id, stopGraceOf(labels))));
  } catch (error) {
    if (!notice && before.length > 0)
      await host.ingress.route(siteId, host.ingress.newest(siteId, told), before);
    throw error;
  }
  return {};
};
