import { eq, sql } from "drizzle-orm";
import { isId } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { databases, deployments, domains, mails, notices, sites } from "../../db/schema.ts";
import { policyExitCode } from "../../domain/policy-exit.ts";
import { inPlans } from "../../domain/plan-words.ts";
import type { Notification } from "../../domain/notification-texts.ts";

type Notice = typeof notices.$inferSelect;

const maxText = 2000;
const firstOf = (text: string | null, otherwise: string): string => (text ?? otherwise).slice(0, maxText);

/** What a notice says, read from the record; null: what it is about is gone. */
export async function compose(ctx: Ctx, notice: Notice): Promise<Notification | null> {
  const found = await said(ctx, notice);
  return (
    found && {
      kind: notice.kind,
      resourceId: notice.resourceId,
      subject: found.subject,
      text: inPlans(found.text),
      link: new URL(found.path, ctx.config.SITE_URL).href,
    }
  );
}

type Said = { subject: string; text: string; path: string };

async function said(ctx: Ctx, { kind, occasion, resourceId: id, detail }: Notice): Promise<Said | null> {
  if (kind === "backup_failed" || kind === "invoice_due") return ofMail(ctx, detail ?? "", id);
  if (kind === "deploy_failed") return ofDeployment(ctx, id);
  if (kind === "certificate") return ofDomain(ctx, id);
  const resource = await resourceOf(ctx, id);
  if (!resource) return null;
  const { what, name, error, path } = resource;
  if (kind === "crash_loop")
    return {
      subject: policyExitCode(error ?? "") === null ? `${name} keeps exiting` : `${name} has exited`,
      text: firstOf(error, `The ${what} ${name} kept exiting and was stopped.`),
      path,
    };
  if (kind === "unhealthy")
    return {
      subject: `${name} is unhealthy`,
      text: firstOf(detail, `A health check of ${name} fails.`),
      path,
    };
  return {
    subject: occasion.startsWith("memory:") ? `${name} runs out of memory` : `${name} is almost full`,
    text: firstOf(detail, resource.disk ?? `The ${what} ${name} is near its plan's limit.`),
    path,
  };
}

async function ofMail(ctx: Ctx, mailId: string, resourceId: string): Promise<Said | null> {
  const [mail] = await ctx.db.select().from(mails).where(eq(mails.id, mailId));
  return mail ? { subject: mail.subject, text: mail.text.slice(0, maxText), path: pathOf(resourceId) } : null;
}

async function ofDeployment(ctx: Ctx, id: string): Promise<Said | null> {
  const [row] = await ctx.db
    .select({
      number: deployments.number,
      error: deployments.error,
      site: sites.name,
      serving: sites.serving,
    })
    .from(deployments)
    .innerJoin(sites, eq(sites.id, deployments.siteId))
    .where(sql`${deployments.id} = ${id}`);
  if (!row) return null;
  return {
    subject: `Deployment #${row.number} of ${row.site} failed`,
    text:
      firstOf(row.error, "No reason is known.") +
      (row.serving ? "\n\nThe previous version keeps serving." : ""),
    path: `/deployments/${id}`,
  };
}

async function ofDomain(ctx: Ctx, id: string): Promise<Said | null> {
  const [row] = await ctx.db
    .select({ name: domains.name, siteId: domains.siteId, problems: domains.problems })
    .from(domains)
    .where(sql`${domains.id} = ${id}`);
  if (!row) return null;
  const problem = row.problems.find(({ code }) => code === "certificate_failed");
  return {
    subject: `No certificate for ${row.name}`,
    text: firstOf(problem?.message ?? null, `A certificate for ${row.name} could not be issued.`),
    path: `/sites/${row.siteId}`,
  };
}

const pathOf = (id: string): string =>
  id.startsWith("db_") ? `/databases/${id}` : id.startsWith("site_") ? `/sites/${id}` : "/billing";

type Resource = { what: string; name: string; error: string | null; disk: string | null; path: string };

async function resourceOf(ctx: Ctx, id: string): Promise<Resource | null> {
  if (isId("site", id)) {
    const [row] = await ctx.db
      .select({ name: sites.name, error: deployments.error })
      .from(sites)
      .leftJoin(deployments, eq(deployments.id, sites.currentDeploymentId))
      .where(eq(sites.id, id));
    return row ? { what: "site", ...row, disk: null, path: pathOf(id) } : null;
  }
  if (!isId("database", id)) return null;
  const [row] = await ctx.db
    .select({
      name: databases.name,
      error: databases.error,
      diskMb: databases.diskMb,
      diskGb: sql<number>`(SELECT disk_gb FROM packs WHERE id = ${databases.packId})`,
    })
    .from(databases)
    .where(eq(databases.id, id));
  if (!row) return null;
  const disk = `The database ${row.name} uses ${((row.diskMb ?? 0) / 1024).toFixed(1)} GB of its plan's ${row.diskGb} GB.`;
  return { what: "database", name: row.name, error: row.error, disk, path: pathOf(id) };
}
