import http from "node:http";
import net from "node:net";
import type { HealthCheck } from "../../protocol/api/sites.ts";

/**
 * @property hostname the site's name, as some apps answer to no other
 * @property check how the site wants it: over TCP, or with another limit
 */
export type Probe = {
  address: string;
  port: number;
  path: string | null;
  hostname: string | undefined;
  check?: Pick<HealthCheck, "kind" | "timeoutSeconds">;
};

const connectMs = 2000;
const answerMs = 5000;
/** Where any answer will do, an app that takes connections so long and gives none speaks another protocol, or slowly. */
const anyAnswerMs = 3000;
const silent = "gave no answer";
const notHttp = "does not answer by plain HTTP";
/** Without a path: it took the connection, and gave no answer. */
export const connects = "takes connections";

/** One try from outside the container: an HTTP answer below 400; without a path, any answer, also in another protocol. */
export async function probe(asked: Probe, leftMs: number, signal: AbortSignal): Promise<true | string> {
  const { path, check = {} } = asked;
  const limitMs = check.timeoutSeconds === undefined ? answerMs : check.timeoutSeconds * 1000;
  if (check.kind === "tcp") return connect(asked, Math.max(1, Math.min(limitMs, leftMs)), signal);
  if (path !== null) {
    const answer = await ask({ ...asked, path }, Math.min(limitMs, Math.max(connectMs, leftMs)), signal);
    if ("status" in answer)
      return answer.status >= 200 && answer.status < 400 ? true : `answers ${answer.status}`;
    return answer.failed === silent || answer.failed === notHttp ? answer.failed : `failed: ${answer.failed}`;
  }
  const answer = await ask({ ...asked, path: "/" }, Math.max(1, Math.min(anyAnswerMs, leftMs)), signal);
  if ("status" in answer || answer.failed === notHttp) return true;
  return answer.hasConnected ? connects : answer.failed;
}

/** Whether the port takes a connection. */
function connect({ address, port }: Probe, limitMs: number, signal: AbortSignal): Promise<true | string> {
  return new Promise((resolve) => {
    const socket = net.connect({ host: address, port, signal });
    socket.setTimeout(limitMs, () => socket.destroy(new Error("takes no connection")));
    socket.once("connect", () => {
      resolve(true);
      socket.destroy();
    });
    socket.once("error", ({ message }) => resolve(`failed: ${message}`));
  });
}

type Answer = { status: number } | { failed: string; hasConnected: boolean };

function ask(
  { address, port, path, hostname }: Probe & { path: string },
  patienceMs: number,
  signal: AbortSignal,
): Promise<Answer> {
  return new Promise((resolve) => {
    let hasConnected = false;
    const headers = { "User-Agent": "berth-probe", ...(hostname !== undefined && { Host: hostname }) };
    const request = http.get({ host: address, port, path, signal, agent: false, headers }, (response) => {
      resolve({ status: response.statusCode ?? 0 });
      // What follows may never end.
      request.destroy();
    });
    // Not of silence: an answer may come byte by byte.
    const tooLong = setTimeout(() => request.destroy(new Error(silent)), patienceMs);
    request.once("socket", (socket) => socket.once("connect", () => (hasConnected = true)));
    request.once("close", () => clearTimeout(tooLong));
    request.once("error", ({ message, code }: NodeJS.ErrnoException) =>
      resolve({ failed: code?.startsWith("HPE_") ? notHttp : message, hasConnected }),
    );
  });
}
