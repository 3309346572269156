import { errorCatalogue, type ErrorCode } from "../protocol/errors.ts";

/** The body of an error, beyond its `error` text. */
type ErrorDetails = {
  reason?: string;
  issues?: { path: string; message: string }[];
  requestId?: string;
  [field: string]: unknown;
};

/** The service refused the request, or failed. `code` is the name in protocol/errors.ts. */
export class ApiError extends Error {
  override name = "ApiError";
  readonly code: ErrorCode;
  readonly status: number;
  readonly details: ErrorDetails;
  /** Seconds, for `rate_limited`. */
  readonly retryAfterSeconds: number | undefined;
  /** The path that was asked for. */
  readonly path: string | undefined;
  /** A change that may be made all the same. */
  readonly mayBeDone: boolean;
  constructor(
    code: ErrorCode,
    status: number,
    details: ErrorDetails,
    {
      retryAfterSeconds,
      path,
      mayBeDone = false,
    }: { retryAfterSeconds?: number | undefined; path?: string; mayBeDone?: boolean } = {},
  ) {
    super(describe(code, details));
    this.path = path;
    this.mayBeDone = mayBeDone;
    this.code = code;
    this.status = status;
    this.details = details;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** No answer, or not one of this service: the address is wrong, the network is down, or a proxy answered instead. */
export class NetworkError extends Error {
  override name = "NetworkError";
  /** A change that may be made all the same: the service may have received the request. */
  readonly mayBeDone: boolean;
  constructor(message: string, { cause, mayBeDone = false }: { cause?: unknown; mayBeDone?: boolean } = {}) {
    super(message, { cause });
    this.mayBeDone = mayBeDone;
  }
}

const describe = (code: ErrorCode, { reason, issues }: ErrorDetails): string =>
  reason ??
  (issues?.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ") ||
    errorCatalogue[code].text);

const codeOf = (status: number, text: unknown): ErrorCode => {
  const all = Object.entries(errorCatalogue) as [ErrorCode, { status: number; text: string }][];
  const known = all.find(([, one]) => one.text === text) ?? all.find(([, one]) => one.status === status);
  return known?.[0] ?? (status >= 500 ? "server_error" : "invalid_request");
};

/**
 * The error that an answer stands for. @param mayBeDone of a change that may be made all the same @throws NetworkError if the answer
 * is not JSON of this API
 */
export async function errorOf(response: Response, mayBeDone = false): Promise<ApiError> {
  const body: unknown = await response.json().catch(() => null);
  if (typeof body !== "object" || body === null || !("error" in body)) throw notOurs(response, mayBeDone);
  const { error, ...details } = body as { error: unknown } & ErrorDetails;
  return new ApiError(codeOf(response.status, error), response.status, details, {
    retryAfterSeconds: retryAfter(response),
    path: new URL(response.url).pathname,
    mayBeDone,
  });
}

/** Without the query of the address, which may hold a signature. */
export function notOurs({ url, status }: Response, mayBeDone = false): NetworkError {
  const { origin, pathname } = new URL(url);
  return new NetworkError(
    `${origin}${pathname} answered ${status}, but not as the API does: it is not a Berth service, or a proxy in between answered.`,
    { mayBeDone },
  );
}

/** Seconds to wait (RFC 9110, section 10.2.3); only the number form, which this service sends. */
export function retryAfter(response: Response): number | undefined {
  const text = response.headers.get("Retry-After");
  return text !== null && /^\d{1,6}$/.test(text) ? Number(text) : undefined;
}
