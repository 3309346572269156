import * as z from "zod";

const Answer = z.object({
  Status: z.number(),
  Answer: z.array(z.object({ type: z.number(), data: z.string() })).default([]),
});

const txt = 16;

/** A TXT record consists of one or more quoted strings, which are concatenated (RFC 1035, section 3.3.14). */
const joined = (data: string): string =>
  data.startsWith('"') ? [...data.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, part]) => part).join("") : data;

/**
 * Looks up TXT records by DNS over HTTPS (JSON form) and merges the answers of all resolvers, whose caches differ.
 * @throws if none answers
 */
export async function resolveTxt(endpoints: readonly string[], name: string): Promise<string[]> {
  const answers = await Promise.allSettled(
    endpoints.map(async (endpoint) => {
      const url = new URL(endpoint);
      url.searchParams.set("name", name);
      url.searchParams.set("type", "TXT");
      const response = await fetch(url, {
        headers: { Accept: "application/dns-json" },
        signal: AbortSignal.timeout(5000),
      });
      if (!response.ok) throw new Error(`${url.host} answered ${response.status}`);
      return Answer.parse(await response.json())
        .Answer.filter(({ type }) => type === txt)
        .map(({ data }) => joined(data));
    }),
  );
  const found = answers.filter((answer) => answer.status === "fulfilled");
  if (found.length === 0) throw new Error("No DNS resolver answered", { cause: answers });
  return found.flatMap(({ value }) => value);
}
