import {
  closeCodes,
  FromAgent,
  isOfOtherVersion,
  maxFrameBytes,
  protocolVersion,
  ToAgent,
} from "../protocol/agent/messages.ts";
import { jsonIn } from "../protocol/json.ts";
import type { InventoryReporter } from "./inventory/reporter.ts";
import { log } from "./log.ts";
import { refusalOfNewer } from "./refuse-newer.ts";
import type { Runner } from "./runner.ts";
import { isAboutRunning, type QuestionServer } from "./question-server.ts";
import { isAboutStreams, type StreamServer } from "./streams/stream-server.ts";
import { openSocket, type Socket, type SocketEnd } from "./socket.ts";

type Hello = Extract<FromAgent, { type: "hello" }>;
type LinkOptions = {
  /** The control plane's address, http or https. */
  url: string;
  token: string;
  /** Of this process. */
  instance: string;
  runner: Runner;
  questionServer: QuestionServer;
  streams: StreamServer;
  inventory: InventoryReporter;
  agentVersion: string;
  facts: () => Hello["facts"];
  peer: () => NonNullable<Hello["peer"]>;
  /** Sites whose routing was lost. */
  lostSites: () => Hello["lostSites"];
  /** Called with the agent version that the control plane distributes. */
  onWelcome?: ((agent: Extract<ToAgent, { type: "welcome" }>["agent"]) => void) | undefined;
  onCertificates: (told: Extract<ToAgent, { type: "certificates" }>) => void;
  onPeers: (peers: Extract<ToAgent, { type: "peers" }>) => void;
  /** In [0, 1). */
  random: () => number;
};

/** A connection shorter than this counts as another failure, so that a flapping link still backs off. */
const stableAfterMs = 10_000;
/** Pings are answered even if the control plane fails to process a hello: reconnect without a welcome. */
const welcomeWithinMs = 15_000;

/** Milliseconds until the next attempt, with full jitter so that a fleet does not reconnect at once. */
export function retryDelayMs(failures: number, end: SocketEnd, random: () => number): number {
  if (end.status === 401 || end.status === 403 || end.code === closeCodes.hostRemoved) return 60_000;
  if (end.code === closeCodes.superseded || (end.status === 409 && failures > 5))
    return 10_000 + random() * 5000;
  const ceiling = Math.min(5000, 250 * 2 ** Math.min(failures, 10));
  return 50 + random() * ceiling;
}

/** Keeps the agent connected. @returns a function that ends the link */
export function startLink({
  url,
  token,
  instance,
  runner,
  questionServer,
  streams,
  inventory,
  agentVersion,
  facts,
  peer,
  lostSites,
  onWelcome,
  onCertificates,
  onPeers,
  random,
}: LinkOptions): () => void {
  const address = `${url.replace(/^http/, "ws").replace(/\/$/, "")}/agent/connect`;
  const credentials = { token, instance };
  let failures = 0;
  let over = false;
  let socket: Socket | undefined;
  let timer: NodeJS.Timeout | undefined;

  const connect = (): void => {
    let greeted = false;
    let refused = false;
    let welcome: NodeJS.Timeout | undefined;
    const openedAt = performance.now();
    const opened: Socket = openSocket(address, credentials, {
      onOpen: (connection) => {
        welcome = setTimeout(() => connection.close(closeCodes.linkDead), welcomeWithinMs);
        send(connection, {
          type: "hello",
          protocol: protocolVersion,
          agentVersion,
          facts: facts(),
          peer: peer(),
          lostSites: lostSites(),
          ...runner.leases(),
        });
      },
      onText: (text) => {
        if (over || refused) return;
        const json = jsonIn(text);
        const message = ToAgent.safeParse(json).data;
        if (!message && greeted) {
          const refusal = refusalOfNewer(json);
          if (refusal) send(opened, refusal);
          if (refusal || isOfOtherVersion(json, "controlPlane"))
            return log("warn", "The control plane sent what only another version of the agent knows", {
              type: typeIn(text),
            });
        }
        // The first message must be the only welcome.
        if (!message || (message.type === "welcome") === greeted) {
          refused = true;
          log("error", "The control plane sent a message that this agent does not understand; reconnecting", {
            type: typeIn(text),
          });
          opened.close(closeCodes.protocolError);
        } else if (message.type === "welcome") {
          greeted = true;
          clearTimeout(welcome);
          log("info", "Connected", { url, epoch: message.epoch });
          // First: outdated crashes must not end what a job starts afterwards.
          questionServer.connected((outgoing) => send(opened, outgoing));
          streams.connected({
            send: (outgoing) => send(opened, outgoing),
            sendBytes: (frame) => opened.send(frame),
          });
          runner.connected((outgoing) => send(opened, outgoing));
          inventory.connected((outgoing) => send(opened, outgoing), message.now);
          onWelcome?.(message.agent);
        } else if (isAboutRunning(message)) questionServer.receive(message);
        else if (isAboutStreams(message)) streams.receive(message);
        else if (message.type === "verdicts") inventory.receive(message);
        else if (message.type === "certificates") onCertificates(message);
        else if (message.type === "peers") onPeers(message);
        else runner.receive(message);
      },
      onBytes: (bytes) => {
        if (!over && !refused && greeted) streams.receiveBytes(bytes);
      },
      onEnd: (end) => {
        clearTimeout(welcome);
        runner.disconnected();
        questionServer.disconnected();
        streams.disconnected();
        inventory.disconnected();
        if (over) return;
        failures = greeted && performance.now() - openedAt > stableAfterMs ? 0 : failures + 1;
        const delayMs = retryDelayMs(failures, end, random);
        if (greeted || failures === 1 || failures % 20 === 0)
          log("warn", reasonOf(end), { ...end, retryMs: Math.round(delayMs) });
        timer = setTimeout(connect, delayMs);
      },
    });
    socket = opened;
  };
  connect();
  return () => {
    over = true;
    clearTimeout(timer);
    // The programs of terminals end before this process.
    streams.disconnected();
    socket?.close(1000);
  };
}

/**
 * The control plane would end the connection, and with it all that tenants have open through it, for a message that is too long or
 * does not parse: none of those leaves.
 * @returns whether it was sent
 */
function send(socket: Socket, message: FromAgent): boolean {
  const text = JSON.stringify(message);
  const reason = unfitness(message, text);
  if (reason === null) {
    socket.send(text);
    return true;
  }
  const kind = message.type === "answer" ? message.answer.kind : undefined;
  log("error", "A message is not fit for the link and was not sent", { type: message.type, kind, reason });
  return false;
}

/** Nothing of what the message contains, which may be a tenant's; null: it is fit. */
function unfitness(message: FromAgent, text: string): string | null {
  const bytes = Buffer.byteLength(text);
  if (bytes > maxFrameBytes) return `it has ${bytes} bytes`;
  const [issue] = FromAgent.safeParse(message).error?.issues ?? [];
  return issue ? `${issue.path.join(".")}: ${issue.message}` : null;
}

/** For the log, and only that: a message may contain a password. */
const typeIn = (text: string): string => /^\{"type":"(\w{1,20})"/.exec(text)?.[1] ?? "unknown";

function reasonOf({ code, status }: SocketEnd): string {
  if (status === 401 || status === 403)
    return "The control plane refuses this host's token: create the host again with it (BERTH_HOST_TOKEN in /etc/berth/agent.env). With another token, this agent does not recognize the sites and databases that run here";
  if (status === 409)
    return "Another agent with this host's token is connected, so this one is refused: run only one. If this machine is to be the host, stop the agent on the other one (systemctl disable --now berth-agent), then restart this one (systemctl restart berth-agent)";
  if (code === closeCodes.superseded)
    return "Another agent of this host has connected: run only one with this token";
  if (code === closeCodes.hostRemoved) return "This host was removed";
  return "The link to the control plane is down; sites keep serving";
}
