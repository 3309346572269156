import { setTimeout as delay } from "node:timers/promises";
import type { ContainerSpec } from "../docker/engine.ts";
import { label } from "../docker/labels.ts";
import type { Host } from "../host.ts";
import { ensureImage } from "../image-build/ensure-image.ts";
import { ingressImage, startIngress } from "../ingress/container.ts";
import { log } from "../log.ts";

/** Starts Caddy with this configuration; one that has it already is left alone. */
export async function ensureIngress(host: Host, spec: ContainerSpec, signal: AbortSignal): Promise<void> {
  const found = await host.engine.inspectContainer(spec.name);
  const isAsWanted = found?.labels[label.config] === spec.Labels[label.config];
  if (!isAsWanted) await untilImageIsHere(host, ingressImage, signal);
  if (found && !isAsWanted) await host.engine.removeContainer(found.id);
  await startIngress(host.engine, spec);
}

/** The pause respects registries' rate limits. */
async function untilImageIsHere(host: Host, image: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      return await ensureImage(host, image, signal);
    } catch (error) {
      log("error", "The image of this host's ingress is missing; no site is served until it can be pulled", {
        error,
      });
      await delay(30_000);
    }
  }
}
