import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { WebSocketServer, type WebSocket } from "ws";
import { FromAgent, type ToAgent } from "../../protocol/agent/messages.ts";

type Of<T extends FromAgent["type"]> = Extract<FromAgent, { type: T }>;

/** One agent's connection, as the control plane sees it. */
export class Connection {
  private readonly frames: FromAgent[] = [];
  private readonly waiters: (() => void)[] = [];
  private readonly socket: WebSocket;
  readonly closed: Promise<number>;

  constructor(socket: WebSocket) {
    this.socket = socket;
    this.closed = once(socket, "close").then(([code]) => code as number);
    socket.on("message", (data: Buffer) => {
      if (data.toString() === "ping") return socket.send("pong");
      this.frames.push(FromAgent.parse(JSON.parse(data.toString())));
      for (const wake of this.waiters.splice(0)) wake();
    });
  }

  send(message: ToAgent | string): void {
    this.socket.send(typeof message === "string" ? message : JSON.stringify(message));
  }

  /** The next message of this type; other messages are kept. */
  async next<T extends FromAgent["type"]>(type: T): Promise<Of<T>> {
    for (;;) {
      const index = this.frames.findIndex((frame) => frame.type === type);
      const [frame] = index < 0 ? [] : this.frames.splice(index, 1);
      if (frame) return frame as Of<T>;
      await new Promise<void>((resolve) => this.waiters.push(resolve));
    }
  }

  waiting(type: FromAgent["type"]): FromAgent[] {
    return this.frames.filter((frame) => frame.type === type);
  }

  /** Breaks the connection without a close frame. */
  cut(): void {
    this.socket.terminate();
  }

  close(code: number): void {
    this.socket.close(code);
  }
}

/** A control plane for tests: accepts agents and leaves the rest to the test. */
export class Hub {
  private readonly server: WebSocketServer;
  private readonly connections: Connection[] = [];
  private readonly waiters: (() => void)[] = [];

  private constructor(server: WebSocketServer) {
    this.server = server;
    server.on("connection", (socket) => {
      this.connections.push(new Connection(socket));
      for (const wake of this.waiters.splice(0)) wake();
    });
  }

  static async open(): Promise<Hub> {
    const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
    await once(server, "listening");
    return new Hub(server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** The next agent that connects. */
  async connection(): Promise<Connection> {
    for (;;) {
      const next = this.connections.shift();
      if (next) return next;
      await new Promise<void>((resolve) => this.waiters.push(resolve));
    }
  }

  /** The next agent, after its hello was answered with a welcome. */
  async greeted(): Promise<{ agent: Connection; hello: Of<"hello"> }> {
    const agent = await this.connection();
    const hello = await agent.next("hello");
    agent.send({ type: "welcome", epoch: 1, now: new Date().toISOString() });
    return { agent, hello };
  }

  close(): void {
    for (const client of this.server.clients) client.terminate();
    this.server.close();
  }
}
