import type { FromAgent, ToAgent } from "../../protocol/agent/messages.ts";
import {
  mayHaveTakenEffect,
  type Answer,
  type Followed,
  type Question,
  type SiteLogLine,
} from "../../protocol/agent/running.ts";
import type { SiteRequest } from "../../protocol/api/requests.ts";
import type { Reader } from "../ctx.ts";
import { siteLogLine } from "../domain/site-log-line.ts";
import { logError } from "../log-error.ts";

type Send = (socket: WebSocket, message: ToAgent) => void;
type Part = Extract<FromAgent, { type: "answer" }>;
export type Refused = Extract<Answer, { kind: "refused" }>;
type Asking = { socket: WebSocket; take(part: Part): void; end(): void };
type WorkingOf = (readers: Reader[]) => Promise<Set<Reader>>;
type Following = {
  siteId: string;
  reader: Reader;
  requestId: string;
  writer: WritableStreamDefaultWriter<Uint8Array>;
};

const answerWithinMs = 10_000;
/** In addition to the time limit of a statement, or of reading a repository. */
const graceMs = 5000;
const heartbeatMs = 15_000;
export const accessEnded = ": the key or session has ended\n\n";
const followersPerSite = 20;
/** The limit per account, so that no account uses all of a host's capacity. */
const followersPerAccount = 60;
const followersPerHost = 200;
/** The maximum size of one buffered answer; no question requests more. */
const maxLines = 1000;
/**
 * The maximum backlog of a slow reader; its stream is then closed and resumes from the last line it received. An agent that waits for
 * acknowledgements stays far below it.
 */
const bytesAhead = 512 * 1024;

const withinMs = (question: Question): number =>
  "timeoutMs" in question ? question.timeoutMs + graceMs : answerWithinMs;
export const refused = (error: string): Refused => ({ kind: "refused", error });
export const offline = "The host is offline. Try again in a minute. Running containers may still be serving.";
export const slow = "The host did not answer in time. Try again.";

/**
 * Users' questions about sites and databases on one host. Nothing is stored: a question ends with its socket, and a
 * follower also with its reader.
 */
export class HostQuestions {
  private readonly send: Send;
  private readonly isAlive: () => boolean;
  private readonly workingOf: WorkingOf;
  private readonly asking = new Map<string, Asking>();
  private readonly following = new Set<Following>();
  private readonly encoder = new TextEncoder();
  private heartbeat: ReturnType<typeof setInterval> | undefined;

  constructor(send: Send, isAlive: () => boolean, workingOf: WorkingOf) {
    this.send = send;
    this.isAlive = isAlive;
    this.workingOf = workingOf;
  }

  /** The complete answer. */
  ask(socket: WebSocket | undefined, question: Question): Promise<Answer> {
    if (!socket || !this.isAlive()) return Promise.resolve(refused(offline));
    const parts: Answer[] = [];
    const isWrite = question.kind === "query" && question.write !== null;
    return new Promise((resolve) => {
      const requestId = this.open(socket, question, {
        take: ({ answer, last }) => {
          parts.push(answer);
          if (last) settle(joined(parts));
          else if (linesOf(parts) > maxLines) giveUp();
        },
        end: () =>
          settle(
            refused(isWrite ? `The host went offline before it answered. ${mayHaveTakenEffect}` : offline),
          ),
      });
      const giveUp = () => {
        this.send(socket, { type: "endAsk", requestId });
        settle(refused(isWrite ? `The host did not answer in time. ${mayHaveTakenEffect}` : slow));
      };
      const timer = setTimeout(giveUp, withinMs(question));
      const settle = (answer: Answer) => {
        clearTimeout(timer);
        this.asking.delete(requestId);
        resolve(answer);
      };
    });
  }

  /** A log or requests as server-sent events, until the reader or host disconnects, or the reader's key or session ends. */
  follow(
    socket: WebSocket | undefined,
    hostId: string,
    question: Followed,
    reader: Reader,
  ): ReadableStream<Uint8Array> | Refused {
    if (!socket || !this.isAlive()) return refused(offline);
    const { siteId } = question;
    const full = this.whyFull(siteId, reader);
    if (full) return refused(full);
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>(undefined, {
      highWaterMark: bytesAhead,
      size: (chunk) => chunk.byteLength,
    });
    const follower: Following = {
      siteId,
      reader,
      requestId: "",
      writer: writable.getWriter(),
    };
    follower.requestId = this.open(socket, question, {
      take: ({ answer, last, ack }) => {
        if (answer.kind === "logs" && answer.lines.length > 0)
          this.write(follower, eventsOf(hostId, answer.lines), () => {
            const { requestId } = follower;
            if (ack && this.isOpen(socket, requestId)) this.send(socket, { type: "answerAck", requestId });
          });
        if (answer.kind === "requests" && answer.requests.length > 0)
          this.write(follower, requestEventsOf(hostId, answer.requests));
        if (!last) return;
        this.asking.delete(follower.requestId);
        this.leave(follower);
      },
      end: () => this.leave(follower),
    });
    this.following.add(follower);
    follower.writer.closed.catch(() => undefined).finally(() => this.stop(follower));
    // Sends the response headers, which wait for the first bytes.
    this.write(follower, ": following\n\n");
    this.heartbeat ??= setInterval(() => this.beat(), heartbeatMs);
    return readable;
  }

  /** Why another follower is refused; null: admitted. */
  private whyFull(siteId: string, { accountId }: Reader): string | null {
    const all = [...this.following];
    const ofSite = all.filter((one) => one.siteId === siteId).length;
    const ofAccount = all.filter(({ reader }) => reader.accountId === accountId).length;
    if (ofSite >= followersPerSite)
      return `${ofSite} readers already follow this log. Close one of them first.`;
    if (ofAccount >= followersPerAccount)
      return `${ofAccount} readers already follow logs of your account on this host. Close one of them first.`;
    if (all.length >= followersPerHost)
      return "The maximum number of readers follow logs of this host. Try again in a minute.";
    return null;
  }

  isOpen(socket: WebSocket, requestId: string): boolean {
    return this.asking.get(requestId)?.socket === socket;
  }

  receive(socket: WebSocket, part: Part): void {
    const asking = this.asking.get(part.requestId);
    if (asking) asking.take(part);
    else if (!part.last) this.send(socket, { type: "endAsk", requestId: part.requestId });
  }

  /** The socket is closed, which ends all questions sent over it. */
  end(socket: WebSocket): void {
    for (const asking of this.asking.values()) if (asking.socket === socket) asking.end();
  }

  /** This host has no further log lines of this site or database. */
  letGo(id: string): void {
    for (const follower of this.following) if (follower.siteId === id) this.leave(follower);
  }

  private open(socket: WebSocket, question: Question, asking: Omit<Asking, "socket">): string {
    const requestId = crypto.randomUUID();
    this.asking.set(requestId, { socket, ...asking });
    this.send(socket, { type: "ask", requestId, question });
    return requestId;
  }

  /** @param onRead called when the reader has taken it */
  private write(follower: Following, text: string, onRead?: () => void): void {
    if ((follower.writer.desiredSize ?? 0) <= 0) return this.leave(follower);
    follower.writer.write(this.encoder.encode(text)).then(
      () => onRead?.(),
      () => this.stop(follower),
    );
  }

  private beat(): void {
    const alive = this.isAlive();
    for (const follower of this.following)
      if (alive) this.write(follower, ": still here\n\n");
      else this.leave(follower);
    this.leaveEnded().catch((error: unknown) => logError({ followers: this.following.size }, error));
  }

  /** One query for all followers; streams whose key or session has ended are closed. */
  private async leaveEnded(): Promise<void> {
    const followers = [...this.following];
    const working = await this.workingOf(followers.map(({ reader }) => reader));
    for (const follower of followers) {
      if (working.has(follower.reader)) continue;
      this.write(follower, accessEnded);
      this.leave(follower);
    }
  }

  /** Ends the reader's stream. */
  private leave(follower: Following): void {
    this.stop(follower);
    follower.writer.close().catch(() => undefined);
  }

  /** Ends the question. */
  private stop(follower: Following): void {
    if (!this.following.delete(follower)) return;
    const asking = this.asking.get(follower.requestId);
    this.asking.delete(follower.requestId);
    if (asking?.socket.readyState === WebSocket.OPEN)
      this.send(asking.socket, { type: "endAsk", requestId: follower.requestId });
    if (this.following.size > 0) return;
    clearInterval(this.heartbeat);
    this.heartbeat = undefined;
  }
}

function eventsOf(hostId: string, lines: SiteLogLine[]): string {
  return lines
    .map(
      (line) =>
        `id: ${line.place ?? line.at}@${hostId}\nevent: line\ndata: ${JSON.stringify(siteLogLine(line))}\n\n`,
    )
    .join("");
}

const requestEventsOf = (hostId: string, requests: SiteRequest[]): string =>
  requests.map((one) => `id: ${one.id}@${hostId}\nevent: request\ndata: ${JSON.stringify(one)}\n\n`).join("");

/** An answer other than a log has a single part. One without a line counts too, since each is kept. */
const linesOf = (parts: Answer[]): number =>
  parts.reduce((count, part) => count + (part.kind === "logs" ? part.lines.length || 1 : Infinity), 0);

function joined(parts: Answer[]): Answer {
  const [first] = parts;
  if (first?.kind !== "logs") return first ?? refused(slow);
  // In place of the rest.
  const refusal = parts.find(({ kind }) => kind === "refused");
  if (refusal) return refusal;
  return { kind: "logs", lines: parts.flatMap((part) => (part.kind === "logs" ? part.lines : [])) };
}
