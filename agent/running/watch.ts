import type { Id } from "../../protocol/ids.ts";
import type { SiteEvent } from "../../protocol/api/running.ts";
import { telling } from "../docker/telling-lines.ts";
import type { ContainerEvent, ContainerState, Engine } from "../docker/engine.ts";
import { ownerOf, replicaOf, secretsIn, siteLabels, stopGraceOf, stopGraceSeconds } from "../docker/specs.ts";
import { servingIds, type Ingress } from "../ingress/ingress.ts";
import { log } from "../log.ts";
import { plain, redactor } from "../../protocol/redact.ts";
import { takeOutDatabase } from "./databases-out.ts";
import type { Crash, DatabaseCrash, PendingCrash, Records } from "./records.ts";
import { label } from "../docker/labels.ts";

/** Knowledge about servers that only the databases' code has. */
export type DatabaseExits = {
  /** Removes a known obstacle to the server's start. @returns false if there is none */
  repair(labels: Readonly<Record<string, string>>): Promise<boolean>;
  /** The meaning of its last lines for its owner; null: unknown. */
  advice(lines: readonly string[]): string | null;
};

export type Watched = {
  engine: Engine;
  ingress: Ingress;
  records: Records;
  agentId: string;
  /** Replicas that are left stopped while others serve. */
  out: Set<string>;
  onStart: (siteId: string, containerId: string) => void;
  onEnd: (siteId: string, containerId: string) => void;
  /** Called when the engine is available, for the first time or again. */
  onConnect: () => void;
  /** Called when a version was taken out of service because it keeps exiting, or is not to be started again. */
  onCrash: (crash: Crash) => void;
  databaseExits: DatabaseExits;
  /** Called when a database's server was stopped because it keeps exiting. */
  onDatabaseOut: (crash: DatabaseCrash) => void;
  /** Called when a database's server or a container that serves was killed for its memory. */
  onOutOfMemory?: (id: string, detail: string) => void;
};

/** This many exits within this time are a crash loop: Docker's first pauses between restarts take seconds. */
const loopExits = 5;
const loopMs = 60_000;
/** So is this number of consecutive runs that are each shorter than that: an app may take its time to give up. */
const loopLives = 10;
/** The pause between reports of a container that is out of memory. */
const oomAgainMs = 10_000;
/** The maximum number of events that the engine repeats. */
const engineKeeps = 256;
const shownLines = 20;
/** Stacks among them are not shown. */
const readLines = 100;
const maxErrorCharacters = 2000;

/** Records the events of sites' and databases' containers, and takes versions that keep exiting out of service. */
export function watchSites(watched: Watched, signal: AbortSignal): void {
  const { engine, records, agentId } = watched;
  const history = new SiteHistory(watched);
  let handling: Promise<void> = Promise.resolve();
  const before = records.eventsUpTo();
  let upTo = before;
  let known: string[] = [];
  const inOrder = (work: () => Promise<void>): void => {
    handling = handling
      .then(work)
      .catch((error) => log("error", "An event of a site was not recorded", { error }));
  };
  for (const pending of records.crashes()) if (!pending.isOut) inOrder(() => takeOut(watched, pending));
  for (const out of records.databasesOut())
    if (!out.isOut) inOrder(async () => watched.onDatabaseOut(await takeOutDatabase(watched, out)));
  engine.watchContainers({ [label.agent]: agentId }, signal, {
    since: () => upTo,
    onConnect: watched.onConnect,
    onEvent: (event) => {
      // The engine repeats events from that moment on. Times may go back: concurrent events arrive in any order, and
      // clocks are set.
      const key = `${event.time} ${event.action} ${event.containerId}`;
      if (event.time === before || known.includes(key)) return;
      known = [...known.slice(1 - engineKeeps), key];
      upTo = event.time;
      const siteId = ownerOf(event.labels);
      if (!siteId) return;
      if (event.action === "start") watched.onStart(siteId, event.containerId);
      if (event.action === "die") watched.onEnd(siteId, event.containerId);
      inOrder(() => history.take(siteId, event));
    },
  });
}

class SiteHistory {
  private readonly watched: Watched;
  /** Containers that were asked to end. */
  private readonly asked = new Set<string>();
  /** Times at which containers exited by themselves or ran out of memory, in milliseconds. */
  private readonly exits = new Map<string, number[]>();
  /** The start of a container's current run, and the number of consecutive short runs before it. */
  private readonly lives = new Map<string, { startedAt: number; short: number }>();
  private readonly ooms = new Map<string, number>();
  private readonly oomsTold = new Map<string, number>();

  constructor(watched: Watched) {
    this.watched = watched;
  }

  async take(siteId: string, event: ContainerEvent): Promise<void> {
    const { records } = this.watched;
    const { action, containerId, labels, time } = event;
    if (action === "oom" && this.isTold(containerId, millisecondsOf(time))) return;
    const add = (kind: SiteEvent["kind"], detail: string) =>
      records.addEvent(siteId, containerId, {
        at: new Date(millisecondsOf(time)).toISOString(),
        kind,
        detail,
      });
    const version = versionOf(labels);
    records.takenIn(time);
    switch (action) {
      case "kill":
        this.asked.add(containerId);
        return;
      case "start": {
        this.asked.delete(containerId);
        this.watched.out.delete(containerId);
        this.lives.set(containerId, {
          startedAt: millisecondsOf(time),
          short: this.lives.get(containerId)?.short ?? 0,
        });
        const last = records.lastKind(containerId);
        if (last === "exit" || last === "oom")
          add("restart", `${version} was started again after it exited.`);
        else add("start", `${version} was started.`);
        return;
      }
      case "oom": {
        const container = await this.watched.engine.inspectContainer(containerId).catch(() => null);
        const detail = outOfMemory(labels, container);
        if (labels[label.database] || serves(this.watched.ingress, siteId, containerId))
          this.watched.onOutOfMemory?.(siteId, detail);
        return add("oom", detail);
      }
      case "die":
        if (this.asked.delete(containerId)) {
          this.exits.delete(containerId);
          this.lives.delete(containerId);
          return add("stop", `${version} was stopped.`);
        }
        add("exit", `${version} exited with code ${event.exitCode}.`);
        return this.exited(siteId, event);
      default:
        action satisfies never;
    }
  }

  /** Rate-limits reports: a container that respawns a process may run out of memory a hundred times a second. */
  private isTold(containerId: string, atMs: number): boolean {
    this.ooms.set(containerId, atMs);
    const before = this.oomsTold.get(containerId) ?? -Infinity;
    if (atMs < before + oomAgainMs) return true;
    this.oomsTold.set(containerId, atMs);
    return false;
  }

  private async exited(
    siteId: string,
    { containerId, labels, exitCode, time }: ContainerEvent,
  ): Promise<void> {
    const { engine, ingress, out } = this.watched;
    const at = millisecondsOf(time);
    const recent = [...(this.exits.get(containerId) ?? []), at].filter((one) => one > at - loopMs);
    this.exits.set(containerId, recent);
    const life = this.lives.get(containerId);
    const short = life && at - life.startedAt < loopMs ? life.short + 1 : 0;
    if (life) this.lives.set(containerId, { ...life, short });
    const isDatabase = Boolean(labels[label.database]);
    const isLoop = recent.length >= loopExits || short >= loopLives;
    const policy = isDatabase ? "" : labels[label.restart];
    const isOver = policy === "never" || (policy === "on-failure" && exitCode === 0);
    if (!(isLoop || isOver) || !(isDatabase || serves(ingress, siteId, containerId))) return;
    this.exits.delete(containerId);
    this.lives.delete(containerId);
    const container = await engine.inspectContainer(containerId);
    if (!container || !(isDatabase || serves(ingress, siteId, containerId))) return;
    // The obstacle is removed, so the engine's next restart succeeds.
    if (isDatabase && (await this.watched.databaseExits.repair(labels))) return;
    const lacksMemory = (this.ooms.get(containerId) ?? 0) > at - loopMs;
    const often =
      recent.length >= loopExits
        ? `${recent.length} times within a minute`
        : `${short} times in a row, each within a minute of its start`;
    const exits = isOver
      ? `exited with code ${exitCode}, and its restart policy (${policy}) does not start it again.`
      : `exited ${often}, last with code ${exitCode}, and was stopped.`;
    if (isDatabase) {
      const lines = await engine.lastLines(containerId, readLines);
      const advice = lacksMemory
        ? `${outOfMemory(labels, container)} ${startsAgain}`
        : (this.watched.databaseExits.advice(lines) ?? seeLog);
      const reason = `The database's server ${exits} ${advice}`;
      return this.takeOut(siteId, container, reason, lines);
    }
    const others = replicasBeside(ingress, siteId, containerId).filter((one) => !out.has(one));
    const kind = isOver ? "stop" : "crash_loop";
    const advice = lacksMemory
      ? ` ${outOfMemory(labels, container)}`
      : isOver
        ? ""
        : " Fix it and deploy again.";
    if (others.length > 0) {
      const detail = `Replica ${replicaOf(labels)} ${exits}${advice} The site's other replicas keep serving; a restart starts all of them again.`;
      sayReplicaOut(this.watched, siteId, containerId, detail, kind);
      out.add(containerId);
      return engine.stopContainer(containerId, stopGraceOf(labels));
    }
    const next = lacksMemory ? ` ${startsAgain}` : isOver ? " Start or deploy it to run it again." : "";
    const reason = `The app ${exits}${advice}${next}`;
    const error = await lastWords(engine, container, reason);
    // A newer version has taken its place meanwhile.
    if (!serves(ingress, siteId, containerId)) return;
    const deploymentId = labels[label.deployment] ?? "";
    await endService(this.watched, { siteId, containerId, deploymentId, reason, error }, kind);
  }

  private async takeOut(
    id: string,
    container: ContainerState,
    reason: string,
    lines: readonly string[],
  ): Promise<void> {
    const { records, onDatabaseOut } = this.watched;
    const containerId = container.id;
    const at = new Date().toISOString();
    records.addEvent(id, containerId, { at, kind: "crash_loop", detail: reason });
    const databaseId = id as Id<"database">;
    const error = wordsOf(container, reason, lines);
    const crash = { type: "databaseCrashed" as const, databaseId, at, error };
    const out = { crash, containerId, isOut: false, isKnown: false };
    records.addDatabaseOut(out);
    onDatabaseOut(await takeOutDatabase(this.watched, out));
  }
}

const startsAgain = "Once its pack is larger, it starts again by itself.";
const seeLog = "Check its log; then start it again, or restore a backup into it.";

type TakingOut = Pick<Watched, "engine" | "ingress" | "records" | "agentId" | "onCrash">;

/** Takes the last serving container out of service until a job starts one; `error` is shown to the owner. */
export async function endService(
  means: TakingOut,
  {
    siteId,
    containerId,
    deploymentId,
    reason,
    error,
  }: Record<"siteId" | "containerId" | "deploymentId" | "reason" | "error", string>,
  kind: SiteEvent["kind"] = "crash_loop",
): Promise<void> {
  const crash: Crash = {
    type: "crashed",
    siteId: siteId as Id<"site">,
    deploymentId: deploymentId as Id<"deployment">,
    error,
  };
  means.records.addEvent(siteId, containerId, { at: new Date().toISOString(), kind, detail: reason });
  const pending = { crash, containerId, isOut: false };
  means.records.addCrash(pending);
  await takeOut(means, pending);
}

export const sayReplicaOut = (
  { records }: Pick<Watched, "records">,
  siteId: string,
  containerId: string,
  detail: string,
  kind: SiteEvent["kind"] = "crash_loop",
): void => records.addEvent(siteId, containerId, { at: new Date().toISOString(), kind, detail });

/**
 * Routes visitors to the page of a stopped site, then stops the container. Repeatable after an interruption of the
 * agent.
 */
async function takeOut(
  { engine, ingress, records, agentId, onCrash }: TakingOut,
  pending: PendingCrash,
): Promise<void> {
  const { crash, containerId } = pending;
  const before = ingress.fallback(crash.siteId) ?? [];
  await ingress.withdraw(crash.siteId, containerId);
  if (ingress.current(crash.siteId) !== "parked") {
    if (serves(ingress, crash.siteId, before[0]?.containerId ?? "")) {
      // It was on probation: what served before it does again, and may have stopped for it.
      await engine.stopContainer(containerId, stopGraceSeconds);
      for (const one of before) await engine.startContainer(one.containerId);
    }
    // Otherwise a newer container took its place at the last moment: the site serves.
    return records.forgetCrash(crash);
  }
  const replicas = await engine.listContainers({
    ...siteLabels(crash.siteId),
    [label.agent]: agentId,
    [label.deployment]: crash.deploymentId,
  });
  const running = replicas.filter((one) => one.running && one.id !== containerId);
  await Promise.all([
    engine.stopContainer(containerId, stopGraceSeconds),
    ...running.map(({ id, labels }) => engine.stopContainer(id, stopGraceOf(labels))),
  ]);
  records.addCrash({ ...pending, isOut: true });
  onCrash(crash);
}

export function serves(ingress: Ingress, siteId: string, containerId: string): boolean {
  return servingIds(ingress, siteId).includes(containerId);
}

const replicasBeside = (ingress: Ingress, siteId: string, containerId: string): string[] =>
  servingIds(ingress, siteId).filter((id) => id !== containerId);

/** The version's name in events. */
function versionOf(labels: Record<string, string>): string {
  if (labels[label.database]) return "The database's server";
  const replica = labels[label.replica];
  const isOneOfSeveral = Number(labels[label.replicas] ?? 1) > 1;
  return `Version ${labels[label.deployment] ?? "unknown"}${isOneOfSeveral ? `, replica ${replica},` : ""}`;
}

const outOfMemory = (
  labels: Record<string, string>,
  container: Pick<ContainerState, "memoryMb"> | null,
): string => {
  const memory = container?.memoryMb;
  const who = labels[label.database] ? "The database's server" : "The app";
  return `${who} used more memory than its pack has${memory ? ` (${memory} MB)` : ""} and was killed by the kernel: reduce its memory use, or choose a larger pack.`;
};

/** The reason with the container's last output, without its secrets. */
export async function lastWords(engine: Engine, container: ContainerState, reason: string): Promise<string> {
  return wordsOf(container, reason, await engine.lastLines(container.id, readLines));
}

function wordsOf(container: ContainerState, reason: string, lines: readonly string[]): string {
  const redact = redactor(secretsIn(container));
  return withLines(reason, telling(lines.map((line) => redact(plain(line)))).slice(-shownLines));
}

/** Appends the last lines that fit. */
function withLines(reason: string, lines: string[]): string {
  if (lines.length === 0) return `${reason} It printed nothing.`;
  const room = maxErrorCharacters - reason.length - 20;
  return `${reason} Its last lines: ${lines.join("\n").slice(-room)}`;
}

const millisecondsOf = (time: string): number => Math.floor(Number(time) * 1000);
