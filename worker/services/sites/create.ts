import { and, asc, eq, sql } from "drizzle-orm";
import type { SiteCreate, SiteCreated } from "../../../protocol/api/sites.ts";
import { accountOf, type Ctx } from "../../context.ts";
import { invoices, packs, sites } from "../../db/schema.ts";
import { conflict, invalid } from "../../domain/app-error.ts";
import { addDays, invoiceDueDays, termPriceCents } from "../../domain/pricing.ts";
import { refuseTooManyReplicas } from "../../domain/replicas.ts";
import { siteSlug } from "../../domain/slug.ts";
import { mintToken, sha256Hex } from "../../domain/tokens.ts";
import { keepVolumes } from "../volumes/keep.ts";
import { newSegment } from "../webhooks/address.ts";

/** A PENDING site and its unpaid invoice; nothing is deployed. */
export async function createSite(ctx: Ctx, input: SiteCreate): Promise<SiteCreated> {
  const accountId = accountOf(ctx);
  const [[pack], [taken]] = await ctx.db.batch([
    ctx.db
      .select()
      .from(packs)
      .where(
        and(
          eq(packs.kind, "site"),
          eq(packs.active, true),
          input.packId ? sql`${packs.id} = ${input.packId}` : sql`1`,
        ),
      )
      .orderBy(asc(packs.priceCents), asc(packs.id))
      .limit(1),
    ctx.db
      .select({ id: sites.id })
      .from(sites)
      .where(and(eq(sites.accountId, accountId), eq(sites.name, input.name))),
  ]);
  if (!pack) throw invalid("packId", "no active site pack has this id");
  if (taken) throw conflict(`You already have a site named ${input.name}: choose another name.`);

  refuseTooManyReplicas("replicas", input.replicas ?? 1, pack.memoryMb);

  const now = ctx.now();
  const siteId = ctx.newId("site");
  const invoiceId = ctx.newId("invoice");
  const invoiceToken = mintToken("inv", ctx.random(32));
  const amountCents = termPriceCents(pack.priceCents, input.billingTerm, pack.discounts);
  const months = `${input.billingTerm} ${input.billingTerm === 1 ? "month" : "months"}`;
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
    buildCommand: input.buildCommand,
    startCommand: input.startCommand,
    rootDir: input.rootDir,
    dockerfilePath: input.dockerfilePath,
    healthCheckPath: input.healthCheckPath,
    replicas: input.replicas,
    volumes: input.volumes,
    region: input.region,
    packId: pack.id,
    billingTerm: input.billingTerm,
    slug: siteSlug(input.name, ctx.random(8)),
    webhookHash: sha256Hex(newSegment(ctx, siteId, 1)),
    createdAt: now,
    updatedAt: now,
  };
  const [created] = await ctx.db.batch([
    ctx.db
      .insert(sites)
      .values(site)
      .onConflictDoNothing({ target: [sites.accountId, sites.name] })
      .returning({ id: sites.id }),
    // Only beside its site: a name taken in the meantime leaves nothing.
    ctx.db.insert(invoices).select(
      ctx.db
        .select({
          id: sql`${invoiceId}`.as("id"),
          token: sql`${invoiceToken}`.as("token"),
          accountId: sites.accountId,
          kind: sql`'site'`.as("kind"),
          status: sql`'unpaid'`.as("status"),
          amountCents: sql`${amountCents}`.as("amount_cents"),
          currency: sql`${pack.currency}`.as("currency"),
          lines:
            sql`${JSON.stringify([{ description: `Site ${input.name}: ${pack.name}, ${months}`, amountCents }])}`.as(
              "lines",
            ),
          resourceId: sites.id,
          termMonths: sites.billingTerm,
          packId: sql`NULL`.as("pack_id"),
          periodEnd: sql`NULL`.as("period_end"),
          createdAt: sites.createdAt,
          dueAt: sql`${addDays(now, invoiceDueDays).getTime()}`.as("due_at"),
          paidAt: sql`NULL`.as("paid_at"),
          settlementMark: sql`NULL`.as("settlement_mark"),
        })
        .from(sites)
        .where(eq(sites.id, siteId)),
    ),
    keepVolumes(ctx, siteId, input.volumes ?? []),
  ]);
  if (created.length === 0)
    throw conflict(`You already have a site named ${input.name}: choose another name.`);
  return { invoiceToken, invoiceId, siteId };
}
