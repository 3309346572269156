import { desc, eq, sql } from "drizzle-orm";
import type { ById } from "../../../protocol/api/common.ts";
import type { Job } from "../../../protocol/api/console.ts";
import type { Ctx } from "../../ctx.ts";
import { accounts, databases, deployments, jobs, sites } from "../../db/schema.ts";
import { AppError, conflict } from "../../domain/app-error.ts";
import { createBackup } from "../backups/create.ts";
import { actOnDatabase } from "../databases/act.ts";
import { idIn } from "../owned.ts";
import { actOnSite } from "../sites/act.ts";
import { jobView, retryableKinds, selectJobs } from "./view.ts";

type Again = (
  owner: Ctx,
  job: { id: string; commit: string | null; ref: string | null; rebuild: boolean | null },
) => Promise<unknown>;
const onSite =
  (action: "start" | "stop" | "restart"): Again =>
  (owner, { id }) =>
    actOnSite(owner, { id, action });
const onDatabase =
  (action: "start" | "stop" | "restart"): Again =>
  (owner, { id }) =>
    actOnDatabase(owner, { id, action });
const again: Record<(typeof retryableKinds)[number], Again> = {
  "site.deploy": (owner, { id, commit, ref, rebuild }) =>
    actOnSite(owner, { id, action: "deploy", ref: commit ?? ref ?? undefined, rebuild: rebuild ?? false }),
  "site.start": onSite("start"),
  "site.stop": onSite("stop"),
  "site.restart": onSite("restart"),
  "database.provision": onDatabase("start"),
  "database.start": onDatabase("start"),
  "database.stop": onDatabase("stop"),
  "database.restart": onDatabase("restart"),
  "database.backup": (owner, { id }) => createBackup(owner, { id }),
};

/** Asks again for what failed, as the owner could, unless something newer was asked for or the owner has stopped it since. */
export async function retryJob(ctx: Ctx, { id }: ById): Promise<Job> {
  const [job] = await selectJobs(ctx).where(eq(jobs.id, idIn("job", id)));
  if (!job) throw new AppError("not_found");
  const about = job.siteId ?? job.databaseId;
  const kind = retryableKinds.find((one) => one === job.kind);
  if (job.status !== "FAILED") throw conflict("Only a failed job can be retried.");
  if (!kind || about === null)
    throw conflict(`A ${job.kind} is not repeated: its owner decides whether to request it again.`);
  if (!job.retryable)
    throw conflict("Something newer was requested since, or it was a rollback or a move: see the resource.");
  const [subject] = await ctx.db
    .select({
      suspendedAt: accounts.suspendedAt,
      isStopped: sql<number>`coalesce((SELECT wanted FROM ${sites} WHERE id = ${job.siteId}),
        (SELECT wanted FROM ${databases} WHERE id = ${job.databaseId})) = 'STOPPED'`.as("is_stopped"),
      commit: deployments.commit,
      ref: deployments.ref,
      rebuild: deployments.rebuild,
    })
    .from(accounts)
    .leftJoin(deployments, sql`${deployments.id} = ${job.deploymentId}`)
    .where(eq(accounts.id, job.accountId));
  if (!subject || subject.suspendedAt !== null) throw conflict("The account is suspended: release it first.");
  if (subject.isStopped === 1 && !kind.endsWith(".stop"))
    throw conflict("Its owner has stopped it since: it is started when they ask for it.");
  const actor = { ...ctx.actor, accountId: job.accountId } as Ctx["actor"];
  await again[kind]({ ...ctx, actor }, { ...subject, id: about });
  const [newest] = await selectJobs(ctx).where(eq(jobs.lane, job.lane)).orderBy(desc(jobs.seq)).limit(1);
  return jobView(newest ?? job);
}
