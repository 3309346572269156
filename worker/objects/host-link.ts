import { DurableObject } from "cloudflare:workers";
import type { Id } from "../../protocol/ids.ts";
import {
  closeCodes,
  FromAgent,
  hostDeadSeconds,
  instanceHeader,
  isOfOtherVersion,
  linkDeadSeconds,
  maxFrameBytes,
  unfitAnswer,
  type ToAgent,
} from "../../protocol/agent/messages.ts";
import { isAnySecond, judgeAgent, type OtherAgent } from "../domain/other-agents.ts";
import { HostInbox } from "../domain/host-inbox.ts";
import type { Lease, LogId, Offer } from "../domain/lease.ts";
import { admit } from "../domain/sliding-window.ts";
import { hostPrograms } from "../adapters/assets.ts";
import type { Answer, Question } from "../../protocol/agent/running.ts";
import { contextOf } from "../compose.ts";
import type { Ctx, Followed, Reader } from "../ctx.ts";
import type { Env } from "../env.ts";
import { logError } from "../log-error.ts";
import { findWorking } from "../services/accounts/find-working.ts";
import { compareHost } from "../services/hosts/compare.ts";
import { markOffline } from "../jobs/hosts/mark-offline.ts";
import { recordCondition } from "../services/hosts/record-condition.ts";
import { recordIngress } from "../services/hosts/record-ingress.ts";
import { recordFailingChecks } from "../services/hosts/record-failing-checks.ts";
import { recordOtherAgent } from "../services/hosts/record-other-agent.ts";
import { recordSlots } from "../services/hosts/record-slots.ts";
import { recordDatabaseCrash } from "../services/databases/record-crash.ts";
import { recordDiskUse } from "../services/databases/record-disk-use.ts";
import { jobTraits } from "../../protocol/agent/jobs.ts";
import { jsonIn } from "../../protocol/json.ts";
import { awaitedCertificate, issuedCertificates } from "../jobs/certificates/issued.ts";
import { peersOf } from "../jobs/hosts/peers.ts";
import { finishJob, failJob } from "../jobs/finish.ts";
import { leaseJob } from "../jobs/lease.ts";
import { offerAnew, untoldJobs } from "../jobs/offer-anew.ts";
import { recordPhase } from "../jobs/progress.ts";
import { resyncHost } from "../jobs/resync.ts";
import { recordLimitNear, recordUnhealthy } from "../services/running/record-notices.ts";
import { recordCrash } from "../services/running/record-crash.ts";
import { HostQuestions } from "./host-questions.ts";
import { HostStreams, isAboutStreams, type AboutStreams } from "./host-streams.ts";
import { streamAddress, streamHeader, type HostLinkRpc, type StreamOpening } from "./rpc.ts";

/** Above any agent's need, and short, so that the agent recovers quickly after others with its token have given up. */
const connectWindow = { limit: 20, windowMs: 10_000 };

/** The state attached to a socket, which survives hibernation. */
type Attachment = {
  hostId: Id<"host">;
  epoch: number;
  /** Names the agent's process; null: one of before this existed. */
  instance: string | null;
  free: number;
  freeCommands: number;
  freeShort: number;
  greeted: boolean;
  openedAt: number;
  /** The client's address, as the platform's edge says. */
  from: string | null;
};

/** Whether the host may serve other certificates from this job on: not if it has only the site's own name. */
const changesCertificates = ({ kind, args }: Offer["job"]): boolean => {
  if (kind === "site.route" || kind === "site.delete" || kind === "site.evict") return true;
  return "run" in args && "hostnames" in args.run && args.run.hostnames.length > 1;
};

/**
 * One object per host. It owns the agent's socket but no jobs: everything is read from D1 when needed. Invariants: one
 * socket has the newest epoch, and older ones are closed; `free` and the like are the last reported capacity minus the
 * offers since; storage records which log a lease may write to, and is rebuilt by a hello, and which databases the host
 * was given, which a restored D1 may have forgotten.
 */
export class HostLink extends DurableObject<Env> implements HostLinkRpc {
  /** Offers are sequential, so that a `free` slot is never used twice. */
  private offering: Promise<void> = Promise.resolve();
  private telling: Promise<void> = Promise.resolve();
  /** Coalesces hints: one pending run serves all of them. */
  private nextOffer: Promise<void> | undefined;
  private readonly inboxes = new WeakMap<WebSocket, HostInbox>();
  /** Sent after the welcome, which must be the first message. */
  private readonly revised = new WeakMap<WebSocket, (Lease & { type: "drop" | "cancel" })[]>();
  private readonly questions = new HostQuestions(
    (socket, message) => this.send(socket, message),
    () => this.isAlive(this.current()),
    (credentials) => this.workingOf(credentials),
  );

  private readonly streams = new HostStreams(
    (socket, message) => this.send(socket, message),
    () => this.isAlive(this.current()),
    (credentials) => this.workingOf(credentials),
  );

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong"));
  }

  /** Accepts the agent's connection or a client's stream; the Worker has authenticated either. */
  override async fetch(request: Request): Promise<Response> {
    if (request.url === streamAddress) return this.openStream(request);
    const hostId = request.headers.get("X-Berth-Host") as Id<"host"> | null;
    if (!hostId || request.headers.get("Upgrade") !== "websocket") return new Response(null, { status: 426 });
    const now = Date.now();
    const { admitted, hits, resetMs } = admit(
      this.ctx.storage.kv.get<number[]>("connects") ?? [],
      now,
      connectWindow,
    );
    if (!admitted) {
      const headers = { "Retry-After": String(Math.max(1, Math.ceil(resetMs / 1000))) };
      return Response.json({ error: "rate_limited" }, { status: 429, headers });
    }
    this.ctx.storage.kv.put("connects", hits);
    const instance = request.headers.get(instanceHeader)?.slice(0, 64) ?? null;
    const from = request.headers.get("CF-Connecting-IP");
    if (instance !== null && (await this.refuses(instance, { hostId, from, now })))
      return Response.json(
        { error: "Another agent with this host's token is connected: run only one" },
        { status: 409 },
      );
    const epoch = (this.ctx.storage.kv.get<number>("epoch") ?? 0) + 1;
    this.ctx.storage.kv.put("epoch", epoch);
    this.ctx.storage.kv.put("hostId", hostId);
    this.closeAll(closeCodes.superseded, "a newer connection of this host");
    const [client, server] = Object.values(new WebSocketPair()) as [WebSocket, WebSocket];
    this.ctx.acceptWebSocket(server);
    this.attach(server, {
      hostId,
      epoch,
      instance,
      free: 0,
      freeCommands: 0,
      freeShort: 0,
      greeted: false,
      openedAt: now,
      from,
    });
    await this.ctx.storage.setAlarm(now + hostDeadSeconds * 1000);
    return new Response(null, { status: 101, webSocket: client });
  }

  /** A second agent is refused and, once it is sure to be one, told of to the operator. */
  private async refuses(
    instance: string,
    { hostId, from, now }: { hostId: Id<"host">; from: string | null; now: number },
  ): Promise<boolean> {
    const socket = this.current();
    const connected = socket && {
      instance: this.attached(socket).instance,
      heardAt: this.heardAt(socket),
    };
    const { kv } = this.ctx.storage;
    const judged = judgeAgent(kv.get<OtherAgent[]>("otherAgents") ?? [], instance, connected, now);
    kv.put("otherAgents", judged.known);
    if (judged.isSecond && kv.get("isSecondTold") === undefined)
      await recordOtherAgent(this.context(hostId), hostId, from ?? "").then(
        () => kv.put("isSecondTold", true),
        (error: unknown) => logError({ otherAgent: hostId }, error),
      );
    return judged.isRefused;
  }

  /** The operator reads of a second agent as long as it tries to connect. */
  private async forgetSecond(hostId: Id<"host">): Promise<void> {
    const { kv } = this.ctx.storage;
    if (kv.get("isSecondTold") === undefined) return;
    if (isAnySecond(kv.get<OtherAgent[]>("otherAgents") ?? [], Date.now())) return;
    await recordOtherAgent(this.context(hostId), hostId, null).then(
      () => kv.delete("isSecondTold"),
      (error: unknown) => logError({ otherAgent: hostId }, error),
    );
  }

  private async openStream(request: Request): Promise<Response> {
    const opening = decodeURIComponent(request.headers.get(streamHeader) ?? "");
    const { target, reader } = JSON.parse(opening) as StreamOpening;
    const opened = await this.streams.open(this.greeted(), target, reader);
    return opened instanceof WebSocket
      ? new Response(null, { status: 101, webSocket: opened })
      : Response.json(opened);
  }

  /** A hint that there may be work. */
  async wake(): Promise<void> {
    await this.offer();
  }

  /** Delivers a job that was leased when it was queued. Without a connected agent, the next hello delivers it. */
  async deliver(offer: Offer): Promise<void> {
    const socket = this.greeted();
    if (!socket) return;
    this.takeSlot(socket, offer);
    this.sendOffer(socket, offer);
  }

  /** Delivers leases of this host that were never sent. */
  async remind(): Promise<void> {
    const socket = this.greeted();
    if (!socket) return;
    const { hostId } = this.attached(socket);
    const ctx = this.context(hostId);
    for (const job of await untoldJobs(ctx, hostId)) {
      if (this.ctx.storage.kv.get(`log:${job.id}:${job.attempt}`) !== undefined) continue;
      const offer = await offerAnew(ctx, hostId, job);
      if (offer) await this.deliver(offer);
    }
  }

  /** A lease was ended or should be cancelled: notifies the agent now or at its next hello. */
  async revise(lease: Lease, verdict: "drop" | "cancel"): Promise<void> {
    const socket = this.current();
    if (!socket) return;
    const revision = { type: verdict, ...lease };
    if (this.attached(socket).greeted) return this.send(socket, revision);
    // The pending hello may have been answered from an older state.
    this.revised.set(socket, [...(this.revised.get(socket) ?? []), revision]);
  }

  /** The site has moved away, or the site or database was deleted. */
  async letGo(id: Id<"site" | "database">): Promise<void> {
    this.ctx.storage.kv.delete(`database:${id}`);
    this.questions.letGo(id);
    this.streams.letGo(id);
  }

  /** Sends the certificates that hosts serve. Without a connected agent, the next hello does it. */
  async certify(): Promise<void> {
    const socket = this.greeted();
    if (!socket) return;
    const { hostId } = this.attached(socket);
    const ctx = this.context(hostId);
    const certificates = await issuedCertificates(ctx, hostId);
    const awaited = await awaitedCertificate(ctx);
    if (certificates.length > 0 || awaited)
      this.send(socket, { type: "certificates", certificates, awaited });
  }

  /** Sends what the host is to the others. Without a connected agent, the next hello does it. */
  tellPeers(): Promise<void> {
    // One after the other, so that what was read last is what arrives last.
    this.telling = this.telling.then(async () => {
      const socket = this.greeted();
      if (!socket) return;
      const { hostId } = this.attached(socket);
      try {
        const peers = await peersOf(this.context(hostId), hostId);
        if (peers) this.send(socket, peers);
      } catch (error) {
        // Its key may be none: that is its own affair.
        logError({ peers: hostId }, error);
      }
    });
    return this.telling;
  }

  /** The host was removed. The record then says that it is not connected, so that this is not asked for again. */
  async disconnect(): Promise<void> {
    this.closeAll(closeCodes.hostRemoved, "this host was removed");
    const hostId = this.ctx.storage.kv.get<Id<"host">>("hostId");
    if (hostId) await markOffline(this.context(hostId), hostId, new Date());
  }

  private closeAll(code: number, reason: string): void {
    for (const socket of this.ctx.getWebSockets()) {
      this.questions.end(socket);
      this.streams.endAll(socket);
      socket.close(code, reason);
    }
  }

  /** Asks the agent about a running site or database. */
  async ask(question: Question): Promise<Answer> {
    return this.questions.ask(this.greeted(), question);
  }

  async follow(
    question: Followed,
    reader: Reader,
  ): Promise<ReadableStream<Uint8Array> | Extract<Answer, { kind: "refused" }>> {
    const hostId = this.ctx.storage.kv.get<Id<"host">>("hostId") ?? "";
    return this.questions.follow(this.greeted(), hostId, question, reader);
  }

  override async webSocketMessage(socket: WebSocket, text: string | ArrayBuffer): Promise<void> {
    const state = this.attached(socket);
    if (socket !== this.current()) return;
    if (typeof text !== "string") {
      // What a window admits is exempt: it is bounded already.
      if (state.greeted && this.streams.receiveBytes(socket, text)) return;
      if (!state.greeted || !this.inboxOf(socket).admits(text.byteLength, Date.now()))
        socket.close(closeCodes.protocolError, "more messages than an agent sends");
      return;
    }
    const { length } = text;
    const json = length <= maxFrameBytes ? jsonIn(text) : undefined;
    const fit = FromAgent.safeParse(json).data;
    const message = fit ?? unfitAnswerIn(text);
    if (!message && state.greeted && isOfOtherVersion(json, "agent")) {
      if (!this.inboxOf(socket).admits(length, Date.now()))
        socket.close(closeCodes.protocolError, "more messages than an agent sends");
      return;
    }
    if (!message || (message.type !== "hello" && !state.greeted))
      return socket.close(closeCodes.protocolError, "not a message of this protocol");
    // Log answers are exempt: busy sites with many followers are not the host's fault.
    if (message.type === "answer" && this.questions.isOpen(socket, message.requestId)) {
      if (!fit) {
        logError({ answer: state.hostId, length }, new Error("It is too long or does not parse"));
        this.send(socket, { type: "endAsk", requestId: message.requestId });
      }
      return this.questions.receive(socket, message);
    }
    if (isAboutStreams(message) && this.streams.receive(socket, message)) return;
    const inbox = this.inboxOf(socket);
    if (!inbox.admits(length, Date.now()))
      return socket.close(closeCodes.protocolError, "more messages than an agent sends");
    if (message.type === "answer") return this.questions.receive(socket, message);
    if (isAboutStreams(message)) return;
    if (message.type !== "ready")
      return inbox.inTurn(length, async () => {
        if (socket === this.current()) await this.handle(socket, message);
      });
    const { free, freeCommands, freeShort, slots, ingressReplacedAt } = message;
    this.attach(socket, { ...state, free, freeCommands, freeShort });
    // Said again with each one. In turn, like all that is written.
    const isReplaced =
      ingressReplacedAt !== undefined && this.ctx.storage.kv.get("ingressReplacedAt") !== ingressReplacedAt;
    if (slots !== undefined || isReplaced)
      await inbox
        .inTurn(length, async () => {
          const ctx = this.context(state.hostId);
          if (slots !== undefined) await recordSlots(ctx, state.hostId, slots);
          if (!isReplaced) return;
          await recordIngress(ctx, state.hostId, ingressReplacedAt);
          this.ctx.storage.kv.put("ingressReplacedAt", ingressReplacedAt);
        })
        .catch((error: unknown) => logError({ ready: state.hostId }, error));
    return this.offer();
  }

  private async handle(
    socket: WebSocket,
    message: Exclude<FromAgent, { type: "answer" | "ready" } | AboutStreams>,
  ): Promise<void> {
    const state = this.attached(socket);
    const ctx = this.context(state.hostId);
    switch (message.type) {
      case "hello": {
        if (state.greeted) return socket.close(closeCodes.protocolError, "a hello comes once");
        const resynced = await resyncHost(ctx, state.hostId, { ...message, from: state.from });
        // It was removed after its token had been accepted.
        if (!resynced) return this.disconnect();
        const { offers, drop, cancel, kept } = resynced;
        this.forgetLogs();
        for (const { jobId, attempt, logId } of kept) this.rememberLog({ jobId, attempt }, logId);
        const served = await this.servedAgent();
        this.attach(socket, { ...state, greeted: true });
        const now = new Date().toISOString();
        this.send(socket, { type: "welcome", epoch: state.epoch, now, ...served });
        for (const lease of drop) this.send(socket, { type: "drop", ...lease });
        for (const lease of cancel) this.send(socket, { type: "cancel", ...lease });
        for (const offer of offers) this.sendOffer(socket, offer);
        for (const revision of this.revised.get(socket) ?? []) this.send(socket, revision);
        // Jobs do not wait for it, and a certificate that cannot be opened does not end the connection.
        await this.certify().catch((error: unknown) => logError({ certificates: state.hostId }, error));
        return this.tellPeers();
      }
      case "phase":
        return recordPhase(ctx, state.hostId, message);
      case "log":
        return this.keepLog(socket, message);
      case "done":
        await finishJob(ctx, state.hostId, message, message.result);
        return this.settle(socket, message);
      case "failed":
        await failJob(ctx, state.hostId, message, message);
        return this.settle(socket, message);
      case "crashed":
        await recordCrash(ctx, state.hostId, message);
        return this.send(socket, {
          type: "crashAck",
          siteId: message.siteId,
          deploymentId: message.deploymentId,
        });
      case "databaseCrashed":
        // While a job on it is in progress, its outcome decides, and the host reports again.
        if (!(await recordDatabaseCrash(ctx, state.hostId, message))) return;
        return this.send(socket, {
          type: "databaseCrashAck",
          databaseId: message.databaseId,
          at: message.at,
        });
      case "inventory": {
        const wasGiven = (id: Id<"database">) => this.ctx.storage.kv.get(`database:${id}`) !== undefined;
        const verdicts = await compareHost(ctx, state.hostId, message, wasGiven);
        const isAnything = verdicts.setAside.length + verdicts.retire.length > 0;
        if (isAnything) this.send(socket, { type: "verdicts", ...verdicts });
        return;
      }
      case "unhealthy":
        return recordUnhealthy(ctx, state.hostId, message);
      case "failingChecks":
        return recordFailingChecks(ctx, state.hostId, message.sites);
      case "limitNear":
        return recordLimitNear(ctx, state.hostId, message);
      case "diskUse":
        return recordDiskUse(ctx, state.hostId, message.databases);
      case "condition":
        return recordCondition(ctx, state.hostId, message);
      default:
        message satisfies never;
    }
  }

  /** Set for the time at which a silent host counts as dead. */
  override async alarm(): Promise<void> {
    const hostId = this.ctx.storage.kv.get<Id<"host">>("hostId");
    if (!hostId) return;
    await this.forgetSecond(hostId);
    const socket = this.current();
    const heardAt = socket ? this.heardAt(socket) : Date.now();
    const deadAt = heardAt + hostDeadSeconds * 1000;
    if (socket && Date.now() < deadAt) return this.ctx.storage.setAlarm(deadAt);
    try {
      await markOffline(this.context(hostId), hostId, new Date(heardAt), new Date());
    } catch (error) {
      // The platform retries an alarm only a few times, and D1 may be down for longer.
      logError({ alarm: "host", hostId }, error);
      return this.ctx.storage.setAlarm(Date.now() + linkDeadSeconds * 1000);
    }
    // An agent that only seemed dead reconnects, and its hello clears the mark.
    socket?.close(closeCodes.linkDead, "no ping");
  }

  override async webSocketClose(socket: WebSocket): Promise<void> {
    this.questions.end(socket);
    this.streams.endAll(socket);
    const { hostId, epoch } = this.attached(socket);
    if (epoch === this.ctx.storage.kv.get<number>("epoch"))
      await markOffline(this.context(hostId), hostId, new Date());
  }

  override async webSocketError(socket: WebSocket): Promise<void> {
    this.questions.end(socket);
    this.streams.endAll(socket);
    socket.close(closeCodes.protocolError);
  }

  /** The result is recorded or no longer needed: the agent may discard it, and the site's next job may start. */
  private async settle(socket: WebSocket, { jobId, attempt }: Lease): Promise<void> {
    this.ctx.storage.kv.delete(`log:${jobId}:${attempt}`);
    this.send(socket, { type: "ack", jobId, attempt });
    await this.offer();
  }

  private async keepLog(socket: WebSocket, message: Extract<FromAgent, { type: "log" }>): Promise<void> {
    const { jobId, attempt, deploymentId: logId, firstSeq, lines } = message;
    // Lines of a stale lease are acknowledged and dropped.
    let lastSeq = firstSeq + lines.length - 1;
    if (this.ctx.storage.kv.get(`log:${jobId}:${attempt}`) === logId) {
      const { DEPLOYMENT_LOG } = this.env;
      const append = () =>
        DEPLOYMENT_LOG.get(DEPLOYMENT_LOG.idFromName(logId)).append(attempt, firstSeq, lines);
      // Retry once: a reset of the object drops the call in flight. The next message may end the job, and with it the
      // agent's copy of the lines.
      lastSeq = await append().catch(append);
    }
    if (lastSeq > 0) this.send(socket, { type: "logAck", jobId, attempt, lastSeq });
  }

  /** The agent and responder versions that hosts should run. */
  private async servedAgent(): Promise<Pick<Extract<ToAgent, { type: "welcome" }>, "agent">> {
    const programs = await hostPrograms(this.env.ASSETS).catch(() => null);
    if (!programs) return {};
    const { agentVersion: version, agentSha256: sha256, responderSha256 } = programs;
    return { agent: { version, sha256, responderSha256 } };
  }

  private offer(): Promise<void> {
    return (this.nextOffer ??= this.offering =
      this.offering
        .catch(() => undefined)
        .then(() => {
          this.nextOffer = undefined;
          return this.offerAll();
        }));
  }

  private async offerAll(): Promise<void> {
    for (;;) {
      const socket = this.greeted();
      if (!socket) return;
      const state = this.attached(socket);
      const room = {
        jobs: state.free > 0,
        lastJob: state.free === 1,
        commands: state.freeCommands > 0,
        lastCommand: state.freeCommands === 1,
        short: state.freeShort > 0,
      };
      if (!room.jobs && !room.commands && !room.short) return;
      const offer = await leaseJob(this.context(state.hostId), state.hostId, room);
      if (!offer) return;
      this.takeSlot(socket, offer);
      this.sendOffer(socket, offer);
    }
  }

  private inboxOf(socket: WebSocket): HostInbox {
    const inbox = this.inboxes.get(socket) ?? new HostInbox();
    this.inboxes.set(socket, inbox);
    return inbox;
  }

  /** The agent may have reported more capacity meanwhile. */
  private takeSlot(socket: WebSocket, { job }: Offer): void {
    const now = this.attached(socket);
    const { slot } = jobTraits[job.kind];
    if (slot === "command") this.attach(socket, { ...now, freeCommands: now.freeCommands - 1 });
    else if (slot === "short") this.attach(socket, { ...now, freeShort: now.freeShort - 1 });
    else this.attach(socket, { ...now, free: now.free - 1 });
  }

  /**
   * Send before writing, because output gates hold messages behind storage writes. If the write is lost, the agent's
   * hello names the lease again.
   */
  private sendOffer(socket: WebSocket, offer: Offer): void {
    this.send(socket, { type: "job", ...offer });
    this.rememberLog({ jobId: offer.job.id, attempt: offer.attempt }, offer.logId);
    if ("database" in offer.job.args)
      this.ctx.storage.kv.put(`database:${offer.job.args.database.databaseId}`, true);
    if (!changesCertificates(offer.job)) return;
    const { hostId } = this.attached(socket);
    this.ctx.waitUntil(this.certify().catch((error: unknown) => logError({ certificates: hostId }, error)));
  }

  private rememberLog({ jobId, attempt }: Lease, logId: LogId | null): void {
    if (logId) this.ctx.storage.kv.put(`log:${jobId}:${attempt}`, logId);
  }

  /** Removes entries of leases that ended without a report. */
  private forgetLogs(): void {
    const { kv } = this.ctx.storage;
    const keys = Array.from(kv.list({ prefix: "log:" }), ([key]) => key);
    for (const key of keys) kv.delete(key);
  }

  /** A newer connection may have closed it; its hello makes up for the lost message. */
  /** An agent ends the connection, and with it everybody's tunnels and logs, for a message that is too long: none of those leaves. */
  private send(socket: WebSocket, message: ToAgent): void {
    if (socket.readyState !== WebSocket.OPEN) return;
    const text = JSON.stringify(message);
    const bytes = Buffer.byteLength(text);
    if (bytes <= maxFrameBytes) return socket.send(text);
    const { hostId } = this.attached(socket);
    logError(
      { host: hostId, type: message.type, bytes },
      new Error("A message is too long and was not sent"),
    );
  }

  /** The socket with the newest epoch. */
  private current(): WebSocket | undefined {
    const epoch = this.ctx.storage.kv.get<number>("epoch");
    return this.ctx
      .getWebSockets()
      .find((socket) => this.attached(socket).epoch === epoch && socket.readyState === WebSocket.OPEN);
  }

  private greeted(): WebSocket | undefined {
    const socket = this.current();
    return socket && this.attached(socket).greeted ? socket : undefined;
  }

  private isAlive(socket: WebSocket | undefined): boolean {
    const pingedAt = socket && this.ctx.getWebSocketAutoResponseTimestamp(socket);
    return socket !== undefined && (!pingedAt || Date.now() - pingedAt.getTime() < linkDeadSeconds * 1000);
  }

  /**
   * When the last message or ping arrived. The platform answers pings without waking this object and records their
   * time.
   */
  private heardAt(socket: WebSocket): number {
    // Not the later of both: a clock that was set back would have it heard in the future.
    return this.ctx.getWebSocketAutoResponseTimestamp(socket)?.getTime() ?? this.attached(socket).openedAt;
  }

  private attached(socket: WebSocket): Attachment {
    return socket.deserializeAttachment() as Attachment;
  }

  private attach(socket: WebSocket, attachment: Attachment): void {
    socket.serializeAttachment(attachment);
  }

  private workingOf(readers: Reader[]): Promise<Set<Reader>> {
    const ctx = contextOf(this.env, { type: "system" }, (work) => this.ctx.waitUntil(work));
    return findWorking(ctx, readers);
  }

  private context(hostId: Id<"host">): Ctx {
    return contextOf(this.env, { type: "host", hostId }, (work) => this.ctx.waitUntil(work));
  }
}

/** An answer that is too long or does not parse ends its question alone, and not all that goes over the host's connection. */
function unfitAnswerIn(text: string): FromAgent | undefined {
  const requestId = /^\{"type":"answer","requestId":"([\w-]{1,64})"/.exec(text)?.[1];
  if (requestId === undefined) return undefined;
  return { type: "answer", requestId, answer: unfitAnswer, last: true };
}
