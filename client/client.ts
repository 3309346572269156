import { entryOperations } from "../protocol/api/entry-operations.ts";
import { operations, type Operation } from "../protocol/api/operations.ts";
import { ApiError, errorOf, NetworkError, notOurs, retryAfter } from "./errors.ts";
import { eventsOf, type ServerEvent } from "./events.ts";
import type { Answer, Input, ListId, OperationId, StreamId } from "./types.ts";

export type ClientOptions = {
  /** The origin of the service, such as https://berth.example. */
  siteUrl: string;
  /** An API key. */
  token?: string;
  /** Sent as User-Agent, which the activity log and the device page show. */
  userAgent?: string;
  fetch?: typeof fetch;
  /** The longest total wait for a rate limit, in milliseconds. */
  maxWaitMs?: number;
  /** Attempts after the connection failed. */
  retries?: number;
  /** Called before a wait, so that a person sees why nothing happens. */
  onWait?: (reason: "rate_limited" | "network", waitMs: number) => void;
  /** Called when a signal ends the wait for the answer to a change, which may be made all the same. */
  onAbandoned?: () => void;
};

export type CallOptions = {
  signal?: AbortSignal | undefined;
  /** Repeats of a request with the same key have one effect. Default: a random key per call. */
  idempotencyKey?: string | undefined;
};

export type Client = {
  /** Calls an operation by its id. @throws ApiError, NetworkError, or the signal's reason */
  call<Id extends OperationId, const Given extends Input<Id>>(
    id: Id,
    input: Given,
    options?: CallOptions,
  ): Promise<Answer<Id, Given>>;
  /** All items of a list, page by page. */
  items<Id extends ListId>(
    id: Id,
    input: Input<Id>,
    options?: CallOptions,
  ): AsyncGenerator<Answer<Id>["data"][number]>;
  /**
   * The server-sent events of an operation, ping comments left out. A GET that is cut off is resumed after the last
   * event until the event `end`; a POST is not repeated: NetworkError.
   */
  stream<Id extends StreamId>(
    id: Id,
    input: Input<Id>,
    options?: CallOptions & { lastEventId?: string; end?: readonly string[] },
  ): AsyncGenerator<ServerEvent>;
  /** The answer of an operation by a name that is not known to the compiler, as the text that came. */
  text(id: string, input: object, options?: CallOptions): Promise<string>;
  /** The raw answer, for files. `url` instead of an operation: an address that an operation answered. */
  file(
    target: { id: OperationId; input: object } | { url: string },
    options?: CallOptions & { range?: string },
  ): Promise<Response>;
};

const all: Record<string, Operation> = { ...operations, ...entryOperations };

/** The address, method and body of a call. Exported for `berth api`. */
export function requestOf(
  siteUrl: string,
  id: string,
  input: object,
): { url: string; method: string; body?: string } {
  const operation = all[id];
  if (operation === undefined) throw new Error(`There is no operation ${id}.`);
  const rest: Record<string, unknown> = { ...input };
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = rest[name];
    delete rest[name];
    if (typeof value !== "string" || value === "" || value === "." || value === "..")
      throw new ApiError("invalid_request", 400, { reason: `${id} needs ${name}.` });
    return encodeURIComponent(value);
  });
  const url = new URL(siteUrl + (operation.at === undefined ? "/api/v1" : "") + path);
  for (const name of Object.keys(operation.query?.shape ?? {})) {
    const value = rest[name] as string | number | boolean | undefined;
    if (value !== undefined) url.searchParams.set(name, String(value));
    delete rest[name];
  }
  const method = operation.method.toUpperCase();
  const hasBody = operation.body !== undefined && !(operation.optionalBody && Object.keys(rest).length === 0);
  return { url: url.href, method, ...(hasBody && { body: JSON.stringify(rest) }) };
}

const pause = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });

/** Full jitter (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/). */
const backoffMs = (attempt: number): number => 200 + Math.random() * Math.min(10_000, 500 * 2 ** attempt);

/** `textNames`: parameters of path and query, which are texts. `kind`: what it answers. */
export type NamedOperation = {
  id: OperationId;
  params: Record<string, string>;
  textNames: string[];
  kind: "json" | "file" | "events";
};

const namesIn = (path: string): string[] => [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
const textNamesOf = ({ path, query }: Operation): string[] => [
  ...namesIn(path),
  ...Object.keys(query?.shape ?? {}),
];
// One that may be asked to follow answers what there is, as JSON.
const kindOf = ({ file, download, streams, query }: Operation): NamedOperation["kind"] =>
  (file ?? download) !== undefined
    ? "file"
    : streams && !("follow" in (query?.shape ?? {}))
      ? "events"
      : "json";

/** Every operation, in the order of the document. */
export const operationList = (): { id: string; method: string; path: string; summary: string }[] =>
  Object.entries(all).map(([id, { method, path, summary }]) => ({
    id,
    method: method.toUpperCase(),
    path,
    summary,
  }));

/**
 * An operation by its id, or by its path below /api/v1 with a method; `params` are the values in that path. undefined:
 * there is none.
 */
export function operationNamed(name: string, method: string): NamedOperation | undefined {
  for (const [id, operation] of Object.entries(all)) {
    const found = { id: id as OperationId, textNames: textNamesOf(operation), kind: kindOf(operation) };
    if (id === name) return { ...found, params: {} };
    if (operation.method.toUpperCase() !== method.toUpperCase() || operation.at !== undefined) continue;
    const names = namesIn(operation.path);
    const match = new RegExp(`^(?:/api/v1)?${operation.path.replaceAll(/\{\w+\}/g, "([^/]+)")}$`).exec(name);
    if (match)
      return {
        ...found,
        params: Object.fromEntries(names.map((one, index) => [one, match[index + 1] ?? ""])),
      };
  }
  return undefined;
}

/** How long an answer may take to begin; that of a conversation takes a minute for each of its turns. */
const answerWithinMs = 4 * 60_000;

/** A gateway between here and the service answered for it. */
const isGateway = (status: number): boolean => status === 502 || status === 503 || status === 504;

export function createClient(options: ClientOptions): Client {
  const { siteUrl, token, userAgent, maxWaitMs = 120_000, retries = 4, onWait, onAbandoned } = options;
  const send = options.fetch ?? fetch;

  /** One request until it is answered: connections that fail and rate limits are waited out. */
  async function answered(
    target: { url: string; method: string; body?: string },
    headers: Record<string, string>,
    { signal, idempotencyKey }: CallOptions,
  ): Promise<Response> {
    const changes = target.method !== "GET";
    const key = idempotencyKey ?? crypto.randomUUID();
    let waitedMs = 0;
    let wasCut = false;
    let mayBeDone = false;
    for (let attempt = 0; ; attempt++) {
      const init: RequestInit = {
        method: target.method,
        headers: {
          Accept: "application/json",
          ...(userAgent !== undefined && { "User-Agent": userAgent }),
          // Never to another service: an address of a file may point to one.
          ...(token !== undefined &&
            target.url.startsWith(`${siteUrl}/`) && { Authorization: `Bearer ${token}` }),
          ...(changes && token !== undefined && { "Idempotency-Key": key }),
          ...(target.body !== undefined && { "Content-Type": "application/json" }),
          ...headers,
        },
        redirect: "manual",
        ...(target.body !== undefined && { body: target.body }),
      };
      const silence = new AbortController();
      const timer = setTimeout(() => silence.abort(), answerWithinMs);
      let response: Response;
      try {
        response = await send(target.url, {
          ...init,
          signal: signal ? AbortSignal.any([signal, silence.signal]) : silence.signal,
        });
      } catch (error) {
        if (signal?.aborted) {
          if (changes) onAbandoned?.();
          throw signal.reason;
        }
        // Without a key for it, a repeated change could have its effect twice.
        const mayRepeat = (!changes || token !== undefined) && !isOfTls(error);
        mayBeDone ||= changes && !isOfConnecting(error);
        if (silence.signal.aborted)
          throw new NetworkError(
            `${new URL(target.url).origin} did not answer within ${answerWithinMs / 60_000} minutes.`,
            { cause: error, mayBeDone },
          );
        if (attempt >= retries || !mayRepeat) throw unreachable(target.url, error, mayBeDone);
        wasCut = true;
        const waitMs = backoffMs(attempt);
        onWait?.("network", waitMs);
        await pause(waitMs, signal);
        continue;
      } finally {
        clearTimeout(timer);
      }
      if (response.status === 429) {
        const waitMs = (retryAfter(response) ?? 2) * 1000 + Math.random() * 250;
        waitedMs += waitMs;
        if (waitedMs > maxWaitMs) throw await errorOf(response);
        await response.body?.cancel();
        onWait?.("rate_limited", waitMs);
        await pause(waitMs, signal);
        attempt--;
        continue;
      }
      // After a cut, 409 may mean that the first attempt is still running there. A real conflict stays one.
      const maybeRunning = wasCut && response.status === 409;
      if (
        (maybeRunning || (isGateway(response.status) && (!changes || token !== undefined))) &&
        attempt < retries
      ) {
        await response.body?.cancel();
        const waitMs = backoffMs(attempt);
        onWait?.("network", waitMs);
        await pause(waitMs, signal);
        continue;
      }
      if (!response.ok)
        // 501: it knows no such change.
        throw await errorOf(
          response,
          mayBeDone || (changes && response.status >= 500 && response.status !== 501),
        );
      // No operation answers a page.
      if (response.headers.get("Content-Type")?.startsWith("text/html")) throw notOurs(response, mayBeDone);
      return response;
    }
  }

  /** The answer as the text that came. @throws NetworkError if it is not JSON */
  async function text(id: string, input: object, one: CallOptions = {}): Promise<string> {
    const target = requestOf(siteUrl, id, input);
    const response = await answered(target, {}, one);
    try {
      const answer = await response.text();
      JSON.parse(answer);
      return answer;
    } catch (error) {
      if (one.signal?.aborted) throw one.signal.reason;
      if (error instanceof SyntaxError) throw notOurs(response);
      throw unreachable(response.url, error, target.method !== "GET");
    }
  }

  const call = async (id: string, input: object, one?: CallOptions): Promise<unknown> =>
    JSON.parse(await text(id, input, one));

  return {
    call: call as Client["call"],

    text,

    items: async function* items(id: string, input: object, one?: CallOptions) {
      let cursor: string | undefined;
      do {
        const page = (await call(id, { ...input, ...(cursor !== undefined && { cursor }) }, one)) as {
          data: never[];
          nextCursor: string | null;
        };
        yield* page.data;
        cursor = page.nextCursor ?? undefined;
      } while (cursor !== undefined);
    } as Client["items"],

    stream: async function* stream(
      id: string,
      input: object,
      {
        signal,
        lastEventId,
        end = ["end"],
        ...one
      }: CallOptions & { lastEventId?: string; end?: readonly string[] } = {},
    ) {
      const follows = "follow" in (all[id]?.query?.shape ?? {});
      const target = requestOf(siteUrl, id, follows ? { ...input, follow: "1" } : input);
      let last = lastEventId;
      for (let cuts = 0; ; cuts++) {
        const headers: Record<string, string> = {
          Accept: "text/event-stream",
          ...(last !== undefined && { "Last-Event-ID": last }),
        };
        const response = await answered(target, headers, { ...one, signal });
        try {
          for await (const event of eventsOf(response)) {
            yield event;
            if (end.includes(event.event)) return;
            last = event.id ?? last;
            cuts = 0;
          }
        } catch (error) {
          if (signal?.aborted) throw signal.reason;
          if (error instanceof NetworkError) throw error;
          if (target.method !== "GET") throw unreachable(target.url, error, true);
        }
        if (target.method !== "GET")
          throw new NetworkError("The answer was cut off before its end.", { mayBeDone: true });
        // Many cuts without an event in between: what follows is not a log.
        if (cuts >= retries * 2) throw new NetworkError("The stream ends again and again without an event.");
        const waitMs = backoffMs(cuts);
        onWait?.("network", waitMs);
        await pause(waitMs, signal);
      }
    } as Client["stream"],

    file(target, { range, ...one } = {}) {
      const request =
        "url" in target ? { url: target.url, method: "GET" } : requestOf(siteUrl, target.id, target.input);
      return answered(request, { Accept: "*/*", ...(range !== undefined && { Range: range }) }, one);
    },
  };
}

/** An error and what caused it, innermost last. */
function chainOf(error: unknown): (Error & { code?: unknown })[] {
  const chain: Error[] = [];
  for (let one = error; one instanceof Error && chain.length < 5; one = one.cause) chain.push(one);
  return chain;
}
const codesOf = (error: unknown): string[] => chainOf(error).map(({ code }) => String(code));

/** What the other end shows, or does not speak: it is the same the next time. */
const isOfTls = (error: unknown): boolean =>
  codesOf(error).some((code) => /^(?:CERT_|ERR_TLS_|ERR_SSL_|UNABLE_TO_|.*SELF_SIGNED)/.test(code));

/** No connection came about, so that nothing was sent. */
const isOfConnecting = (error: unknown): boolean =>
  isOfTls(error) ||
  chainOf(error).some((one) => "syscall" in one && /^(?:connect|getaddrinfo)$/.test(String(one.syscall))) ||
  codesOf(error).some((code) => /^(?:ECONNREFUSED|UND_ERR_CONNECT_TIMEOUT)$/.test(code));

function unreachable(url: string, error: unknown, mayBeDone: boolean): NetworkError {
  const { origin } = new URL(url);
  const codes = codesOf(error);
  const reason = codes.some((code) => /^CERT_(?:HAS_EXPIRED|NOT_YET_VALID)$/.test(code))
    ? `its certificate ${codes.includes("CERT_HAS_EXPIRED") ? "has expired" : "is not yet valid"} by the clock of this computer, which says ${new Date().toISOString().slice(0, 10)}`
    : codes.includes("ERR_SSL_WRONG_VERSION_NUMBER")
      ? "it does not speak TLS, as an address that begins with http:// would say"
      : chainOf(error)
          .map(({ message, code }) => (message === "" || message === "fetch failed" ? code : message))
          .findLast((text) => typeof text === "string");
  const what = mayBeDone ? "did not answer" : "cannot be reached";
  return new NetworkError(`${origin} ${what}: ${String(reason ?? error).trim()}.`, {
    cause: error,
    mayBeDone,
  });
}
