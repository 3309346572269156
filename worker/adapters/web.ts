import { isLoopback } from "../../protocol/loopback.ts";

/** The answer to one request, without its body. */
export type Fetched = { status: number; location: string | null };

const withinMs = 10_000;

/** Posts JSON once; redirects are not followed, and the answer is not read. @returns its status @throws if there is none in ten seconds */
export async function postOnce(url: string, headers: Record<string, string>, body: string): Promise<number> {
  const response = await fetch(url, {
    method: "POST",
    redirect: "manual",
    headers: { "Content-Type": "application/json", "User-Agent": "berth-notifications", ...headers },
    body,
    signal: AbortSignal.timeout(withinMs),
  });
  await response.body?.cancel();
  return response.status;
}

/**
 * Requests an address once, as a visitor does; redirects are not followed. @param ingress answers for names of this
 * machine alone @throws if there is no answer in ten seconds
 */
export async function fetchOnce(url: string, ingress: Pick<Fetcher, "fetch"> | undefined): Promise<Fetched> {
  const server = ingress && isLoopback(new URL(url).hostname) ? ingress : globalThis;
  const response = await server.fetch(url, {
    redirect: "manual",
    headers: { "User-Agent": "berth-probe" },
    signal: AbortSignal.timeout(withinMs),
  });
  await response.body?.cancel();
  return { status: response.status, location: response.headers.get("Location") };
}
