import type { ById } from "../../../protocol/api/common.ts";
import { SiteCreate, type SiteClone, type SiteCloned } from "../../../protocol/api/sites.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { AppError } from "../../domain/app-error.ts";
import { parsed } from "../../domain/parsed.ts";
import { idIn, requireOwned } from "../owned.ts";
import { createSite } from "./create.ts";
import { recordById } from "./get.ts";
import { setSiteEnv } from "./set-env.ts";

/**
 * Creates a PENDING site with the settings, ingress rules and plain variables of another one. Secrets are not copied, and
 * neither is the data of volumes.
 */
export async function cloneSite(ctx: Ctx, { id, ...wanted }: ById & SiteClone): Promise<SiteCloned> {
  const {
    found: [found],
  } = await batch(ctx, { found: ctx.hot(recordById, { id: idIn("site", id) }) });
  const from = requireOwned(ctx, found);
  if (from.status === "DELETING") throw new AppError("not_found");
  const ofSource = {
    github: { githubUrl: from.githubUrl, branch: from.branch, submodules: from.submodules, lfs: from.lfs },
    dockerfile: { dockerfile: from.dockerfile },
    image: { image: from.image },
  }[from.deployType];
  const settings = {
    deployType: from.deployType,
    ...ofSource,
    ...from.buildOptions,
    port: from.port,
    buildCommand: from.buildCommand,
    startCommand: from.startCommand,
    releaseCommand: from.releaseCommand,
    startTimeoutSeconds: from.startTimeoutSeconds,
    rootDir: from.rootDir,
    dockerfilePath: from.dockerfilePath,
    healthCheckPath: from.healthCheckPath,
    replicas: from.replicas,
    healthCheck: from.healthCheck,
    keptImages: from.keptImages,
    lifecycle: from.lifecycle,
    volumes: from.volumes,
    region: from.region,
    packId: from.packId,
    ...wanted,
  };
  const given = Object.fromEntries(
    Object.entries(settings).filter(([, value]) => value !== null && value !== undefined),
  );
  // Its names are its own.
  const { primaryDomain: _, ...ingress } = from.ingress;
  const created = await createSite(ctx, parsed(SiteCreate, given), ingress);
  const env = from.env ?? [];
  const plain = env.filter(({ secret }) => !secret);
  if (plain.length > 0)
    await setSiteEnv(ctx, {
      id: created.siteId,
      envVariables: plain.map(({ key, value, scope }) => ({ key, value, scope })),
    });
  const credentials = [
    ...(from.gitTokenSealed ? ["gitToken"] : []),
    ...(from.registryPasswordSealed ? ["registryUsername", "registryPassword"] : []),
  ];
  return {
    ...created,
    secretsToSet: env.filter(({ secret }) => secret).map(({ key }) => key),
    credentialsToSet: credentials,
  };
}
