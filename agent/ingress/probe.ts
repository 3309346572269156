import http from "node:http";
import net from "node:net";

/** @property hostname the site's name, as some apps answer to no other */
export type Probe = { address: string; port: number; path: string | null; hostname: string | undefined };

const connectMs = 2000;
const answerMs = 5000;
const silent = "gave no answer";
const notHttp = "does not answer by plain HTTP";

/** One try from outside the container: a TCP connection, or an HTTP answer below 400. */
export function probe(
  { address, port, path, hostname }: Probe,
  leftMs: number,
  signal: AbortSignal,
): Promise<true | string> {
  return new Promise((resolve) => {
    if (path === null) {
      const socket = net.connect({ host: address, port, signal });
      socket.setTimeout(connectMs, () => socket.destroy(new Error("no answer")));
      socket.once("connect", () => {
        socket.destroy();
        resolve(true);
      });
      socket.once("error", (error) => resolve(error.message));
      return;
    }
    const headers = { "User-Agent": "berth-probe", ...(hostname !== undefined && { Host: hostname }) };
    const request = http.get({ host: address, port, path, signal, agent: false, headers }, (response) => {
      const status = response.statusCode ?? 0;
      resolve(status >= 200 && status < 400 ? true : `answers ${status}`);
      // What follows may never end.
      request.destroy();
    });
    // Not of silence: an answer may come byte by byte.
    const tooLong = setTimeout(
      () => request.destroy(new Error(silent)),
      Math.min(answerMs, Math.max(connectMs, leftMs)),
    );
    request.once("close", () => clearTimeout(tooLong));
    request.once("error", ({ message, code }: NodeJS.ErrnoException) =>
      resolve(message === silent ? silent : code?.startsWith("HPE_") ? notHttp : `failed: ${message}`),
    );
  });
}
