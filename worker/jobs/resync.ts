import { and, eq, ne, sql } from "drizzle-orm";
import type { FromAgent } from "../../protocol/agent/messages.ts";
import type { Id } from "../../protocol/ids.ts";
import type { Ctx } from "../ctx.ts";
import { batch } from "../db/batch.ts";
import { hosts, jobs } from "../db/schema.ts";
import type { Lease, LogId, Offer } from "../domain/lease.ts";
import { tellAnew } from "./tell-anew.ts";
import { logIdOf } from "./lease.ts";
import { offerAnew } from "./offer-anew.ts";

type Hello = Omit<Extract<FromAgent, { type: "hello" }>, "type" | "protocol"> & {
  /** The address it connects from, where that is known. */
  from?: string | null | undefined;
};

const knows = (list: Lease[], job: { id: string; attempt: number }) =>
  list.some((lease) => lease.jobId === job.id && lease.attempt === job.attempt);

/**
 * Compares the jobs of a connecting agent with the record: running ones stay its own, lost ones are offered again,
 * foreign ones are dropped, and those cancelled in the meantime are cancelled. Null: the host was removed.
 */
export async function resyncHost(
  ctx: Ctx,
  hostId: Id<"host">,
  hello: Hello,
): Promise<{
  offers: Offer[];
  drop: Lease[];
  cancel: Lease[];
  kept: (Lease & { logId: LogId | null })[];
} | null> {
  const { host, leased } = await batch(ctx, {
    host: ctx.db
      .update(hosts)
      .set({
        connectedAt: ctx.now(),
        offlineSince: null,
        agentVersion: hello.agentVersion,
        cpuCount: hello.facts.cpuCount,
        memoryMb: hello.facts.memoryMb,
        memoryLimitMb: sql`coalesce(memory_limit_mb, memory_mb, ${hello.facts.memoryMb})`,
        memoryKnownMb: sql`coalesce(memory_known_mb, memory_mb, ${hello.facts.memoryMb})`,
        slots: hello.slots,
        connectedFrom: hello.from ?? null,
        peerPort: hello.peer?.port ?? null,
        peerKey: hello.peer?.publicKey ?? null,
      })
      .where(and(eq(hosts.id, hostId), ne(hosts.status, "REMOVED")))
      .returning({ id: hosts.id }),
    leased: ctx.db
      .select()
      .from(jobs)
      .where(and(eq(jobs.hostId, hostId), eq(jobs.status, "LEASED"))),
  });
  if (host.length === 0) return null;
  const offers: Offer[] = [];
  const kept = [];
  const cancel = [];
  for (const job of leased) {
    const lease = { jobId: job.id, attempt: job.attempt };
    const known = knows(hello.running, job) || knows(hello.finished, job);
    if (known) kept.push({ ...lease, logId: logIdOf(job) });
    if (known && job.cancelRequested) cancel.push(lease);
    if (known) continue;
    const offer = await offerAnew(ctx, hostId, job);
    if (offer) offers.push(offer);
  }
  await tellAnew(ctx, hostId, hello.lostSites);
  const drop = hello.running.filter(
    (lease) => !leased.some((job) => job.id === lease.jobId && job.attempt === lease.attempt),
  );
  return { offers, drop, cancel, kept };
}
