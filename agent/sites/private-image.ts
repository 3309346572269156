import { randomUUID } from "node:crypto";
import type { JobArgs } from "../../protocol/agent/jobs.ts";
import { emptyLabels, label } from "../docker/labels.ts";
import { siteLabels } from "../docker/specs.ts";
import type { Host } from "../host.ts";
import { createWithin } from "./create-container.ts";
import { undoneAfter } from "./left-over.ts";

type Args = Pick<JobArgs<"site.deploy">, "run" | "deploymentId">;

/**
 * Keeps what was pulled with a login under an id that nobody can know: with containerd's image store, the engine gives an image that it holds
 * to whoever names its digest, also by the address of a registry of their own.
 * @param imageId of the image that the deployment's name stands for, which is its digest in the registry
 * @returns the id of the image that the name stands for from now on
 */
export async function hideDigest(host: Host, { run, deploymentId }: Args, imageId: string): Promise<string> {
  const { engine, agentId } = host;
  const spec = {
    name: `berth-${deploymentId}-image`,
    Image: imageId,
    HostConfig: { NetworkMode: "none" },
    // What a crash leaves of it is swept as other copies are. Of another digest, it is made anew.
    Labels: { ...emptyLabels, [label.agent]: agentId, [label.copy]: deploymentId, [label.config]: imageId },
  };
  const make = (more = {}) => createWithin(host, { ...run, volumes: [] }, { ...spec, ...more });
  return undoneAfter(host, { kind: "unnamed image", id: imageId }, async () => {
    const id = await make().catch((error: unknown) => {
      if (!/no command specified/i.test(String(error))) throw error;
      return make({ Cmd: ["sh"] });
    });
    try {
      const labels = { ...emptyLabels, ...siteLabels(run.siteId), [label.unguessable]: randomUUID() };
      return await engine.commitContainer(id, host.imageRepository(run.siteId), deploymentId, labels);
    } finally {
      await engine.removeContainer(id);
    }
  });
}
