/** The answer to one request, without its body. */
export type Fetched = { status: number; location: string | null };

const withinMs = 10_000;

/** Requests an address once, as a visitor does; redirects are not followed. @throws if there is no answer in ten seconds */
export async function fetchOnce(url: string): Promise<Fetched> {
  const response = await fetch(url, {
    redirect: "manual",
    headers: { "User-Agent": "berth-probe" },
    signal: AbortSignal.timeout(withinMs),
  });
  await response.body?.cancel();
  return { status: response.status, location: response.headers.get("Location") };
}
