/** Names → records of a type, in the presentation form of a zone file (`0 issue "ca.example"`, `"text"`). */
export type Zone = Record<string, Partial<Record<keyof typeof types, string[]>>>;

const types = { A: 1, CNAME: 5, TXT: 16, AAAA: 28, CAA: 257 } as const;

/**
 * A resolver that speaks DNS over HTTPS in its JSON form, as dns.google and cloudflare-dns.com do: CNAMEs are followed
 * and listed, an unknown name is NXDOMAIN. @param broken names that are answered SERVFAIL. @throws Error for what is no question to a resolver
 */
export function answerFromZone(zone: Zone, url: URL, broken: readonly string[] = []): Response {
  if (!url.searchParams.has("type")) throw new Error(`Nobody answers at ${url.href}`);
  const type = (url.searchParams.get("type") ?? "A") as keyof typeof types;
  const Answer: { name: string; type: number; TTL: number; data: string }[] = [];
  let name = (url.searchParams.get("name") ?? "").toLowerCase();
  if (broken.includes(name)) return json({ Status: 2 });
  for (let hops = 0; hops < 8; hops++) {
    const records = zone[name];
    for (const data of records?.[type] ?? []) Answer.push({ name, type: types[type], TTL: 60, data });
    const alias = type === "CNAME" ? undefined : records?.CNAME?.[0];
    if (alias === undefined) break;
    Answer.push({ name, type: types.CNAME, TTL: 60, data: `${alias}.` });
    name = alias;
  }
  return json({
    Status: zone[name] === undefined && Answer.length === 0 ? 3 : 0,
    ...(Answer.length > 0 && { Answer }),
  });
}

const json = (body: object) => Response.json(body, { headers: { "Content-Type": "application/dns-json" } });
