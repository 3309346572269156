import { and, desc, eq, sql } from "drizzle-orm";
import type { ById } from "../../../protocol/api/common.ts";
import type { SiteDiagnosis } from "../../../protocol/api/diagnosis.ts";
import type { SiteHealth } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { activity, databases, invoices } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { diagnose, type SiteFacts } from "../../domain/diagnosis.ts";
import { idIn, requireOwned } from "../owned.ts";
import { askHostOf } from "../running/ask-host.ts";
import { recordById } from "./get.ts";
import { follow } from "./probe.ts";
import { siteView } from "./view.ts";

const shownChanges = 5;
const probedDomains = 3;

/** What is wrong with a site: the record, its host and requests from outside, judged in order by code. */
export async function diagnoseSite(ctx: Ctx, { id: siteId }: ById): Promise<SiteDiagnosis> {
  const id = idIn("site", siteId);
  const {
    found: [found],
    unpaid: [unpaid],
    linked,
    changes,
  } = await batch(ctx, {
    found: ctx.hot(recordById, { id }),
    unpaid: ctx.db
      .select()
      .from(invoices)
      .where(and(eq(invoices.resourceId, id), eq(invoices.status, "unpaid")))
      .orderBy(desc(invoices.id))
      .limit(1),
    linked: ctx.db
      .select({
        id: databases.id,
        name: databases.name,
        status: databases.status,
        error: databases.error,
        invoiceId: sql<
          string | null
        >`(SELECT max(id) FROM invoices WHERE resource_id = databases.id AND status = 'unpaid')`.as(
          "invoice_id",
        ),
      })
      .from(databases)
      .where(sql`${databases.id} IN (SELECT database_id FROM database_links WHERE site_id = ${id})`)
      .orderBy(databases.id),
    changes: ctx.db
      .select()
      .from(activity)
      .where(eq(activity.resourceId, id))
      .orderBy(desc(activity.id))
      .limit(shownChanges),
  });
  const row = requireOwned(ctx, found);
  const site = siteView(ctx, row);
  const [health, probes] = await Promise.all([
    healthOf(ctx, row),
    site.status === "PENDING" ? [] : probesOf(ctx, site),
  ]);
  return diagnose({
    site,
    unpaid: unpaid ? { id: unpaid.id, token: unpaid.token, dueAt: unpaid.dueAt.toISOString() } : null,
    databases: linked,
    health,
    probes,
    changes: changes.map(({ operation, createdAt, actor, outcome }) => ({
      operation,
      at: createdAt.toISOString(),
      actor,
      outcome,
    })),
  });
}

type Row = Parameters<typeof siteView>[1];

/** A sentence if the host cannot be asked. */
async function healthOf(ctx: Ctx, { id, hostId, port }: Row): Promise<SiteHealth | string> {
  try {
    const answer = await askHostOf<"health">(ctx, { id, hostId }, { kind: "health", siteId: id, port });
    return answer?.health ?? "no host has the site.";
  } catch (error) {
    const reason = error instanceof AppError ? error.extra["reason"] : undefined;
    if (typeof reason !== "string") throw error;
    return reason;
  }
}

function probesOf(ctx: Ctx, { url, domains }: SiteFacts["site"]): Promise<SiteFacts["probes"]> {
  const own = new URL(url);
  const verified = domains.flatMap(({ domain, status }) =>
    status === "PENDING_VERIFICATION" ? [] : [domain],
  );
  const allowed = new Set([own.hostname, ...verified]);
  return Promise.all(
    [own.hostname, ...verified.slice(0, probedDomains)].map(async (name) => {
      const first = new URL(own);
      first.hostname = name;
      return { name, probed: await follow(ctx, first, allowed, own.port) };
    }),
  );
}
