import { expect, vi } from "vitest";
import type { Job } from "../../protocol/agent/jobs.ts";
import type { Id } from "../../protocol/ids.ts";
import { contextOf } from "../../worker/compose.ts";
import type { Ctx } from "../../worker/ctx.ts";
import { AppError } from "../../worker/domain/app-error.ts";
import { reconcileBackups } from "../../worker/jobs/backups/reconcile.ts";
import { reconcileDatabases } from "../../worker/jobs/databases/reconcile.ts";
import { changeHost } from "../../worker/services/hosts/change.ts";
import { createHost } from "../../worker/services/hosts/create.ts";
import { removeHost } from "../../worker/services/hosts/remove.ts";
import { reconcileHosts } from "../../worker/cron.ts";
import { reapJobs } from "../../worker/jobs/reap.ts";
import { randomOf } from "../support/random.ts";
import { sql } from "./hosts-service.ts";
import { account, agent, bindings, hello, uniqueName, ready } from "./service.ts";
import { rows } from "./stripe-service.ts";

const given = bindings as { BERTH_SEED?: string; BERTH_SIMULATION_SECONDS?: string };
const seedAgain = Number(given.BERTH_SEED ?? 0);
/** A third of what a simulation has, as there are two of this kind beside the others. */
const budgetMs = (1000 * Number(given.BERTH_SIMULATION_SECONDS ?? 60)) / 3;
const quietRounds = 25;

/** As many seeds as there is time for, or the one that is asked for; `seen` collects how they end, which is told. */
export async function simulateSeeds(
  simulate: (seed: number, seen: Set<string>) => Promise<void>,
): Promise<void> {
  const started = performance.now();
  const seen = new Set<string>();
  let seeds = 0;
  do await simulate(seedAgain || ++seeds, seen);
  while (seeds > 0 && performance.now() - started < budgetMs);
  console.info(`${seeds} seeds: ${[...seen].toSorted().join(", ")}`);
  // On a slow machine there are few runs, and what is rare may not happen.
  if (seeds < 10) return;
  for (const status of ["RUNNING", "STOPPED"]) expect(seen).toContain(`${status} as ${status} was asked for`);
}

type Run = { job: Job; attempt: number; cancelled: boolean };
type PlayedHost = {
  agent: Awaited<ReturnType<typeof agent>>;
  running: Run[];
  /** What is served → which version of it. */
  containers: Map<string, string>;
};
/** What a job that succeeds changes on its host; answers its result. */
export type Effect = (job: Job, attempt: number, containers: Map<string, string>) => unknown;
export type Verbs = Record<string, () => Promise<unknown>>;

/** The Worker with two hosts played by the test: commands, reports and losses in any order, then quiet. */
export class Simulation {
  readonly key: string;
  readonly random;
  readonly hosts: PlayedHost[] = [];
  /** What is to be once all is quiet, by the last accepted command; null: a race, a failure or a cancel decides. */
  asked: "RUNNING" | "STOPPED" | null = "RUNNING";
  private readonly accountId: Id<"account">;
  private readonly effect: Effect;
  private readonly history: string[];
  private readonly deferred: Promise<unknown>[] = [];

  private constructor(seed: number, key: string, accountId: Id<"account">, effect: Effect) {
    this.key = key;
    this.accountId = accountId;
    this.effect = effect;
    this.random = randomOf(seed);
    this.history = [`seed ${seed}`];
  }

  static async of(seed: number, effect: Effect): Promise<Simulation> {
    for (const table of ["sites", "databases", "backups", "jobs"]) await sql(`DELETE FROM ${table}`);
    await sql("UPDATE hosts SET status = 'REMOVED'");
    const key = await account();
    const [me] = await rows<{ id: Id<"account"> }>("SELECT id FROM accounts ORDER BY rowid DESC LIMIT 1");
    const simulation = new Simulation(seed, key, me?.id ?? "acc_none", effect);
    for (const index of [0, 1]) simulation.hosts[index] = await simulation.newHost();
    return simulation;
  }

  get ctx(): Ctx {
    const actor = {
      type: "session",
      accountId: this.accountId,
      role: "operator",
      plan: "free",
      sessionId: "ses_1",
    } as const;
    const ctx = contextOf(bindings, actor, (work) => this.deferred.push(work));
    // Whoever leases a job at once may end before the host is told.
    if (this.random.below(4) === 0) Object.assign(ctx.hosts, { deliver: () => undefined });
    return ctx;
  }

  /** The message of an expectation: the guarantee, and how it came to this. */
  where(guarantee: string): string {
    const running = this.hosts.map(({ running: runs }) => runs.map(({ job }) => job.kind).join());
    return [guarantee, ...this.history, `hosts work on ${JSON.stringify(running)}`].join("\n");
  }

  /** What its owner asks for; `asks` is left out where it does not change what is to run. */
  command(
    name: string,
    run: (ctx: Ctx) => Promise<unknown>,
    asks?: Simulation["asked"],
  ): () => Promise<void> {
    return async () => {
      const refused = await run(this.ctx).then(
        () => null,
        (error: unknown) => {
          if (error instanceof AppError) return error;
          throw new Error(this.where(`${name} is done or refused`), { cause: error });
        },
      );
      this.history.push(`${name}: ${refused ? refused.code : "accepted"}`);
      if (!refused && asks !== undefined) this.asked = asks;
    };
  }

  /** What hosts and time do by themselves. */
  readonly verbs = {
    tick: () => this.tick(),
    done: () => this.report(this.random.pick(this.hosts), true),
    fail: () => this.report(this.random.pick(this.hosts), false),
    /** It forgot some of what it worked on. */
    reconnect: async () => {
      const host = this.anyHost();
      this.tell(host, "reconnects");
      const kept = host.running.filter(() => this.random.below(2) === 0);
      host.agent.close();
      host.agent = await this.connect(host.agent.token, kept);
      host.running = kept;
    },
    drain: () => this.change(this.anyHost(), "drain"),
    activate: () => this.change(this.anyHost(), "activate"),
    /** It died with all it had, and another takes its place. */
    lose: async () => {
      const host = this.anyHost();
      this.tell(host, "is lost");
      host.agent.close();
      await vi.waitUntil(
        async () =>
          (await rows("SELECT id FROM hosts WHERE id = ? AND offline_since > 0", host.agent.hostId)).length,
        { interval: 2, timeout: 10_000 },
      );
      await removeHost(this.ctx, { id: host.agent.hostId, force: "1", loseVolumes: "1" });
      this.hosts[this.hosts.indexOf(host)] = await this.newHost();
    },
  };

  /** Half of `names`, another half each time, in any order; one of seven beside one of `commands`. */
  async play(verbs: Verbs, names: readonly string[], commands: readonly string[]): Promise<void> {
    const run = (name = "") => verbs[name]?.();
    const chosen = names.filter(() => this.random.below(2) === 0);
    await this.settle();
    for (let steps = this.random.below(12); steps >= 0; steps--) {
      const race = this.random.below(7) === 0;
      if (race) this.history.push("at once:");
      await Promise.all([run(this.random.pick(chosen)), race && run(this.random.pick(commands))]);
      if (race) this.asked = null;
      await this.settle();
    }
    if (this.random.below(2) === 0) await run(this.random.pick(commands));
    await this.settle();
  }

  /** Nobody asks for anything any more, and hosts do what they are asked for, until `waiting` finds nothing. */
  async quiet(waiting: () => Promise<unknown[]>): Promise<void> {
    this.history.push("quiet");
    for (const host of this.hosts) await this.change(host, "activate");
    let left: unknown[] = [];
    for (let round = 0; round < quietRounds; round++) {
      await this.tick();
      await this.settle();
      for (let host; (host = this.hosts.find(({ running }) => running.length > 0)); await this.settle())
        await this.report(host, !host.running[0]?.cancelled);
      left = await waiting();
      if (left.length === 0) break;
    }
    expect(left, this.where("nothing waits for ever")).toEqual([]);
  }

  /** Host → what it serves there. */
  containers(): Record<string, string> {
    return Object.fromEntries(
      this.hosts.flatMap((host) =>
        [...host.containers.values()].map((version) => [host.agent.hostId, version]),
      ),
    );
  }

  close(): void {
    for (const host of this.hosts) host.agent.close();
  }

  private anyHost(): PlayedHost {
    return this.random.pick(this.hosts as [PlayedHost, PlayedHost]);
  }

  private tell(host: PlayedHost, what: string): void {
    this.history.push(`host ${this.hosts.indexOf(host)} ${what}`);
  }

  private async newHost(): Promise<PlayedHost> {
    const made = await createHost(this.ctx, { name: uniqueName("played") });
    return { agent: await this.connect(made, []), running: [], containers: new Map() };
  }

  private async connect(token: { id: string; token: string }, kept: Run[]): Promise<PlayedHost["agent"]> {
    const connected = await agent(token);
    connected.send(
      hello({
        running: kept.map(({ job, attempt }) => ({ jobId: job.id, attempt })),
        slots: 3,
        facts: { cpuCount: 4, memoryMb: 50_000 },
      }),
    );
    await connected.next("welcome");
    await this.ready(connected);
    return connected;
  }

  private async change(host: PlayedHost, action: "drain" | "activate"): Promise<void> {
    this.tell(host, action);
    await changeHost(this.ctx, { id: host.agent.hostId, action });
  }

  private async tick(): Promise<void> {
    this.history.push("cron");
    // What a site leaves behind goes on for a while: it is over.
    await sql("UPDATE sites SET leave_at = 1 WHERE leave_at IS NOT NULL");
    await sql("UPDATE jobs SET leased_at = 1 WHERE status = 'LEASED'");
    const { ctx } = this;
    await reconcileHosts(ctx);
    await Promise.all([reapJobs(ctx), reconcileDatabases(ctx), reconcileBackups(ctx)]);
  }

  /** The end of what the host has worked on the longest. */
  private async report(host = this.anyHost(), succeeds: boolean): Promise<void> {
    const run = host.running.shift();
    if (!run) return;
    const { job, attempt, cancelled } = run;
    this.tell(host, `${succeeds ? "has done" : cancelled ? "has cancelled" : "failed at"} ${job.kind}`);
    const lease = { jobId: job.id, attempt };
    if (succeeds)
      host.agent.send({ type: "done", ...lease, result: await this.effect(job, attempt, host.containers) });
    else {
      if (!cancelled) this.asked = null;
      host.agent.send({ type: "failed", ...lease, error: "It broke.", cancelled, durations: null });
    }
    await host.agent.next("ack");
    await this.ready(host.agent);
  }

  private async ready(of: PlayedHost["agent"]): Promise<void> {
    of.send(ready(3, { freeCommands: 2 }));
    await this.echo(of);
  }

  /** Until the Worker has done what it deferred, has offered what waits, and its frames have come. */
  private async settle(): Promise<void> {
    while (this.deferred.length > 0) await Promise.all(this.deferred.splice(0));
    for (const host of this.hosts) {
      const { hostId } = host.agent;
      const link = bindings.HOST_LINK.get(bindings.HOST_LINK.idFromName(hostId));
      await link.wake().catch((cause: unknown) => {
        throw new Error(this.where("a host is offered what waits"), { cause });
      });
      await this.echo(host.agent);
      for (const { type } of host.agent.waiting()) {
        const frame = await host.agent.next(type);
        if (frame.type === "job") host.running.push({ ...frame, cancelled: false });
        if (frame.type === "cancel")
          for (const run of host.running) run.cancelled ||= run.job.id === frame.jobId;
        if (frame.type === "drop")
          host.running = host.running.filter(
            ({ job, attempt }) => job.id !== frame.jobId || attempt !== frame.attempt,
          );
      }
    }
  }

  /** Lines of no lease are answered in their turn: what was sent before them has come, both ways. */
  private async echo(of: PlayedHost["agent"]): Promise<void> {
    const { ctx } = this;
    of.send({
      type: "log",
      jobId: ctx.newId("job"),
      attempt: 1,
      deploymentId: ctx.newId("deployment"),
      firstSeq: 1,
      lines: [{ stream: "stdout", text: "echo", at: ctx.now().toISOString() }],
    });
    const closed = of.closed.then(({ code }) => {
      throw new Error(this.where(`the link of a host stays open: ${code}`));
    });
    await Promise.race([of.next("logAck"), closed]);
  }
}
