import http from "node:http";
import https from "node:https";
import { setTimeout as delay } from "node:timers/promises";
import {
  leaseHeaders,
  PartStored,
  partHashHeader,
  UploadStarted,
  type UploadComplete,
} from "../../../protocol/agent/backups.ts";
import { clocked, defaultPatienceMs, type Patience } from "./patience.ts";

/** Identifies the job for which the control plane grants this host access to a backup. */
export type StoreLease = { backupId: string; jobId: string; attempt: number };

/** The control plane's store of backups. Writes are retried until they succeed or can no longer matter. */
export type BackupStore = {
  patienceMs: Patience;
  begin(lease: StoreLease, signal: AbortSignal): Promise<string>;
  put(lease: StoreLease, part: Part, signal: AbortSignal): Promise<string>;
  complete(lease: StoreLease, done: UploadComplete, signal: AbortSignal): Promise<void>;
  manifest(lease: StoreLease, signal: AbortSignal): Promise<unknown>;
  /** Reads from this byte on, until the connection ends. */
  read(
    lease: StoreLease,
    offset: number,
    signal: AbortSignal,
  ): Promise<{ totalBytes: number; body: AsyncIterable<Buffer> }>;
};
type Part = { number: number; bytes: Buffer; sha256: string };

/** A response of the control plane that is not usable. */
export class StoreError extends Error {
  override name = "StoreError";
  readonly status: number;
  constructor(status: number, text: string) {
    super(`The store answered ${status}: ${text.slice(0, 300)}`);
    this.status = status;
  }
}

export const firstPauseMs = 250;
export const longestPauseMs = 15_000;
/** A connection without traffic for this long is dead. */
const silenceMs = 60_000;

/**
 * Whether a retry may help: no response, or an overloaded or failing server. A complete response that is not JSON is
 * permanent.
 */
const isPassing = (error: unknown): boolean =>
  error instanceof StoreError
    ? error.status >= 500 || error.status === 429 || error.status === 408
    : !(error instanceof SyntaxError);

/** @throws the signal's reason */
export const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  delay(ms, undefined, { signal }).catch(() => signal.throwIfAborted());

/** Retries with growing pauses until the signal aborts. @throws the signal's reason, or a permanent error */
export async function persist<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      if (!isPassing(error)) throw error;
      await pause(pauseMs, signal);
    }
  }
}

async function answer(response: http.IncomingMessage): Promise<unknown> {
  let text = "";
  for await (const chunk of response.setEncoding("utf8") as AsyncIterable<string>) text += chunk;
  if (response.statusCode !== 200) throw new StoreError(response.statusCode ?? 0, text);
  return JSON.parse(text);
}

export function createStore({
  url,
  token,
  patienceMs = defaultPatienceMs,
}: {
  url: string;
  token: string;
  patienceMs?: Patience;
}): BackupStore {
  const { request, Agent } = url.startsWith("https:") ? https : http;
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });

  /** Without fetch, which copies the body. */
  function send(
    method: string,
    path: string,
    lease: StoreLease,
    signal: AbortSignal,
    body?: { bytes: Buffer | string; headers: Record<string, string> },
    headers: Record<string, string> = {},
  ): Promise<http.IncomingMessage> {
    return new Promise((resolve, reject) => {
      const outgoing = request(
        new URL(`/agent/backups/${lease.backupId}/${path}`, url),
        {
          method,
          agent,
          signal,
          timeout: silenceMs,
          headers: {
            Authorization: `Bearer ${token}`,
            [leaseHeaders.job]: lease.jobId,
            [leaseHeaders.attempt]: String(lease.attempt),
            ...headers,
            ...body?.headers,
            ...(body && { "Content-Length": String(Buffer.byteLength(body.bytes)) }),
          },
        },
        resolve,
      );
      outgoing.on("error", reject);
      outgoing.on("timeout", () => outgoing.destroy(new Error("The store does not respond")));
      outgoing.end(body?.bytes);
    });
  }

  async function write<T>(work: (until: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    const clock = clocked(signal, patienceMs.writing, "accepted no bytes of this backup");
    try {
      return await persist(() => work(clock.signal), clock.signal);
    } finally {
      clock.stop();
    }
  }

  return {
    patienceMs,
    begin: (lease, signal) =>
      write(
        async (until) =>
          UploadStarted.parse(await answer(await send("POST", "upload", lease, until))).uploadId,
        signal,
      ),
    put: (lease, { number, bytes, sha256 }, signal) =>
      write(async (until) => {
        const headers = { "Content-Type": "application/octet-stream", [partHashHeader]: sha256 };
        const response = await send("PUT", `parts/${number}`, lease, until, { bytes, headers });
        return PartStored.parse(await answer(response)).etag;
      }, signal),
    complete: (lease, done, signal) =>
      write(async (until) => {
        const body = { bytes: JSON.stringify(done), headers: { "Content-Type": "application/json" } };
        await answer(await send("POST", "complete", lease, until, body));
      }, signal),
    manifest: async (lease, signal) => answer(await send("GET", "manifest", lease, signal)),
    async read(lease, offset, signal) {
      const response = await send("GET", "data", lease, signal, undefined, { Range: `bytes=${offset}-` });
      const totalBytes = Number(/\/(\d+)$/.exec(response.headers["content-range"] ?? "")?.[1]);
      if (response.statusCode === 206 && Number.isSafeInteger(totalBytes))
        return { totalBytes, body: response as AsyncIterable<Buffer> };
      await answer(response);
      throw new StoreError(response.statusCode ?? 0, "It sent no part of the backup");
    },
  };
}
