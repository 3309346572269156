import { jsonIn } from "../../../protocol/json.ts";
import type { FoundSet, ZoneChange } from "../../domain/dns-records.ts";

/** A zone whose records follow the sites. */
export type Zone = {
  /** All records at or below the domain, whoever created them. @throws ZoneError */
  list(): Promise<FoundSet[]>;
  /** All of the changes or none. @throws ZoneError */
  apply(changes: readonly ZoneChange[]): Promise<void>;
};

/** One sentence for the operator. `refused`: the provider rejects this request, and would reject it again. */
export class ZoneError extends Error {
  readonly refused: boolean;
  constructor(message: string, refused: boolean, options?: ErrorOptions) {
    super(message, options);
    this.refused = refused;
  }
}

const answerWithinMs = 10_000;

/**
 * One request to a provider's HTTP API.
 * @param reasonOf what the provider says in a refusal
 * @throws ZoneError
 */
export async function ask(
  provider: string,
  url: URL,
  init: { method?: string; headers: Record<string, string>; body?: unknown },
  reasonOf: (body: unknown) => string | undefined,
): Promise<unknown> {
  const { body, ...rest } = init;
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, {
      ...rest,
      ...(body !== undefined && { body: JSON.stringify(body) }),
      headers: { ...rest.headers, ...(body !== undefined && { "Content-Type": "application/json" }) },
      redirect: "manual",
      signal: AbortSignal.timeout(answerWithinMs),
    });
    text = await response.text();
  } catch (error) {
    throw new ZoneError(`${provider} at ${url.host} could not be reached.`, false, { cause: error });
  }
  const parsed = jsonIn(text);
  if (response.ok) return parsed;
  const reason = reasonOf(parsed)?.slice(0, 300);
  const { status } = response;
  if (status === 401 || status === 403)
    throw new ZoneError(`${provider} does not accept the configured key (${status}). Replace it.`, false);
  if (status === 429)
    throw new ZoneError(`${provider} limits requests (429); the records follow later.`, false);
  throw new ZoneError(
    `${provider} answered ${status}${reason ? `: ${reason}` : ""}.`,
    status >= 400 && status < 500,
  );
}

/** TXT contents are written as one quoted string (RFC 1035, section 3.3.14); other contents stay as they are. */
export const written = (type: string, content: string): string =>
  type === "TXT" ? `"${content.replace(/["\\]/g, "\\$&")}"` : content;

export const read = (type: string, content: string): string =>
  type === "TXT" && content.startsWith('"')
    ? [...content.matchAll(/"((?:[^"\\]|\\.)*)"/g)]
        .map(([, part = ""]) => part.replace(/\\(.)/g, "$1"))
        .join("")
    : content;
