import * as z from "zod";
import type { FoundSet, RecordSet, ZoneChange } from "../../domain/dns-records.ts";
import { ask, read, written, ZoneError, type Zone } from "./zone.ts";

const Listed = z.object({
  result: z.array(
    z.object({
      id: z.string(),
      name: z.string(),
      type: z.string(),
      content: z.string().default(""),
      ttl: z.number(),
      proxied: z.boolean().default(false),
      comment: z.string().nullish(),
    }),
  ),
  result_info: z.object({ total_pages: z.number().default(1) }).nullish(),
});

const Refusal = z.object({ errors: z.array(z.object({ code: z.number(), message: z.string() })) });

type CloudflareSettings = {
  apiUrl: string;
  token: string;
  zoneId: string;
  /** The records below this name are listed. */
  domain: string;
  /** Written to each record that this installation creates; at most 100 characters on a free plan. */
  owner: string;
};

const perPage = 1000;
const maxPages = 100;

/**
 * Cloudflare's API (https://developers.cloudflare.com/api/resources/dns/subresources/records/). The comment of a record marks
 * it as ours; tags need a paid plan. The token needs the permission DNS:Edit for this zone.
 */
export function cloudflareZone({ apiUrl, token, zoneId, domain, owner }: CloudflareSettings): Zone {
  const base = `${apiUrl.replace(/\/$/, "")}/zones/${encodeURIComponent(zoneId)}/dns_records`;
  const request = (path: string, init: { method?: string; body?: unknown } = {}) =>
    ask(
      "Cloudflare",
      new URL(base + path),
      { ...init, headers: { Authorization: `Bearer ${token}` } },
      (body) =>
        Refusal.safeParse(body)
          .data?.errors.map(({ message, code }) => `${message} (${code})`)
          .join("; "),
    );
  return {
    async list() {
      const records: z.infer<typeof Listed>["result"] = [];
      for (let page = 1; page <= maxPages; page++) {
        const query = new URLSearchParams({
          "name.endswith": domain,
          // So that no record moves between two pages.
          order: "name",
          per_page: String(perPage),
          page: String(page),
        });
        const answer = Listed.safeParse(await request(`?${query.toString()}`));
        if (!answer.success) throw new ZoneError("Cloudflare did not answer with the zone's records.", false);
        records.push(...answer.data.result);
        if (page >= (answer.data.result_info?.total_pages ?? 1)) return setsOf(records, domain, owner);
      }
      throw new ZoneError(`The zone has more than ${perPage * maxPages} records below ${domain}.`, false);
    },
    async apply(changes) {
      const batch = { deletes: [] as object[], patches: [] as object[], posts: [] as object[] };
      for (const change of changes) add(batch, change, owner);
      await request("/batch", { method: "POST", body: batch });
    },
  };
}

function setsOf(records: z.infer<typeof Listed>["result"], domain: string, owner: string): FoundSet[] {
  const sets = new Map<string, FoundSet>();
  for (const { id, type, ttl, proxied, comment, ...record } of records) {
    const name = record.name.toLowerCase();
    if (name !== domain && !name.endsWith(`.${domain}`)) continue;
    const ours = comment === owner;
    const key = `${name}/${type}/${ours}`;
    const set = sets.get(key) ?? { name, type, contents: [], ttlSeconds: ttl, proxied, ours, ids: [] };
    set.contents.push(read(type, record.content));
    set.ids.push(id);
    // If the records of a set differ in this, the set is as none of them.
    if (set.ttlSeconds !== ttl || set.proxied !== proxied) set.ttlSeconds = -1;
    sets.set(key, set);
  }
  return [...sets.values()];
}

/** Cloudflare has no sets: the records that differ are changed one by one, in one transaction. */
function add(
  batch: { deletes: object[]; patches: object[]; posts: object[] },
  { wanted, found }: ZoneChange,
  owner: string,
): void {
  const spare = (found?.ids ?? []).map((id, index) => ({ id, content: found?.contents[index] }));
  for (const content of wanted?.contents ?? []) {
    const same = spare.findIndex((one) => one.content === content);
    const record = recordOf(wanted as RecordSet, content, owner);
    const [reused] = spare.splice(same < 0 ? 0 : same, 1);
    if (reused) batch.patches.push({ id: reused.id, ...record });
    else batch.posts.push(record);
  }
  for (const { id } of spare) batch.deletes.push({ id });
}

const recordOf = ({ name, type, ttlSeconds, proxied }: RecordSet, content: string, owner: string) => ({
  name,
  type,
  content: written(type, content),
  ttl: ttlSeconds,
  proxied,
  comment: owner,
});
