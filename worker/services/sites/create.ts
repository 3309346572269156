import { and, eq } from "drizzle-orm";
import type { IngressRules } from "../../../protocol/api/ingress.ts";
import { BuildOptions, type SiteCreate, type SiteCreated } from "../../../protocol/api/sites.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { sites } from "../../db/schema.ts";
import { conflict, invalid } from "../../domain/app-error.ts";
import { refuseTooManyReplicas } from "../../domain/replicas.ts";
import { siteSlug } from "../../domain/slug.ts";
import { webhookHash } from "../../domain/tokens.ts";
import { largestHost, refuseTooLarge } from "../hosts/largest.ts";
import { refuseUnknownRegion, regionsOfHosts } from "../hosts/regions.ts";
import { firstInvoice } from "../../billing/invoices/first.ts";
import { neverPaid, refuseMoreUnpaid } from "../../billing/invoices/never-paid.ts";
import { packOffered } from "../packs/offered.ts";
import { keepVolumes } from "../volumes/keep.ts";
import { refuseUnfetched } from "./refuse-unfetched.ts";
import { newSegment } from "../webhooks/address.ts";

/** Creates a PENDING site and its unpaid invoice; nothing is deployed yet. */
export async function createSite(
  ctx: Ctx,
  input: SiteCreate,
  ingress: IngressRules = {},
): Promise<SiteCreated> {
  const accountId = accountOf(ctx);
  const nameTaken = () => conflict(`You already have a site named ${input.name}. Choose another name.`);
  if (input.deployType === "github") refuseUnfetched(ctx, "githubUrl", input.githubUrl);
  const {
    pack: [pack],
    taken: [taken],
    regions,
    largest: [largest],
    unpaid,
  } = await batch(ctx, {
    pack: packOffered(ctx, "site", input.packId),
    taken: ctx.db
      .select({ id: sites.id })
      .from(sites)
      .where(and(eq(sites.accountId, accountId), eq(sites.name, input.name))),
    regions: regionsOfHosts(ctx),
    largest: largestHost(ctx, input.region),
    unpaid: neverPaid(ctx, accountId),
  });
  if (!pack) throw invalid("packId", "no active site pack has this id");
  refuseUnknownRegion("region", input.region, regions);
  refuseTooLarge(pack, input.region, largest);
  if (taken) throw nameTaken();

  refuseTooManyReplicas("replicas", input.replicas ?? 1, pack.memoryMb);
  refuseMoreUnpaid(unpaid);

  const now = ctx.now();
  const siteId = ctx.newId("site");
  const invoice = firstInvoice(ctx, {
    id: siteId,
    what: `Site ${input.name}`,
    pack,
    billingTerm: input.billingTerm,
    createdAt: now,
  });
  const site: typeof sites.$inferInsert = {
    id: siteId,
    accountId,
    name: input.name,
    status: "PENDING",
    deployType: input.deployType,
    ...(input.deployType === "github" && {
      githubUrl: input.githubUrl,
      branch: input.branch,
      submodules: input.submodules,
      lfs: input.lfs,
      gitTokenSealed: input.gitToken && ctx.secrets.seal(input.gitToken, `sites.git_token:${siteId}`),
      buildCommand: input.buildCommand,
      rootDir: input.rootDir,
      dockerfilePath: input.dockerfilePath,
      buildOptions: BuildOptions.parse(input),
    }),
    ...(input.deployType === "dockerfile" && { dockerfile: input.dockerfile }),
    ...(input.deployType === "image" && {
      image: input.image,
      registryUsername: input.registryUsername,
      registryPasswordSealed:
        input.registryPassword &&
        ctx.secrets.seal(input.registryPassword, `sites.registry_password:${siteId}`),
    }),
    port: input.port,
    startCommand: input.startCommand,
    releaseCommand: input.releaseCommand,
    startTimeoutSeconds: input.startTimeoutSeconds,
    healthCheckPath: input.healthCheckPath,
    replicas: input.replicas,
    healthCheck: input.healthCheck,
    keptImages: input.keptImages,
    lifecycle: input.lifecycle,
    volumes: input.volumes,
    region: input.region,
    ingress,
    packId: pack.id,
    billingTerm: input.billingTerm,
    slug: siteSlug(input.name, ctx.random(8)),
    webhookHash: webhookHash(await newSegment(ctx, siteId, 1)),
    createdAt: now,
    updatedAt: now,
  };
  const { created } = await batch(ctx, {
    created: ctx.db
      .insert(sites)
      .values(site)
      .onConflictDoNothing({ target: [sites.accountId, sites.name] })
      .returning({ id: sites.id }),
    invoice: invoice.statement,
    keepVolumes: keepVolumes(ctx, siteId, input.volumes ?? []),
  });
  if (created.length === 0) throw nameTaken();
  const { invoiceToken, invoiceId } = invoice;
  return { invoiceToken, invoiceId, siteId };
}
