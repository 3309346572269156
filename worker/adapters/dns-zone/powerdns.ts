import * as z from "zod";
import type { FoundSet, ZoneChange } from "../../domain/dns-records.ts";
import { ask, read, written, ZoneError, type Zone } from "./zone.ts";

/** The account that a comment names as the owner of its records. */
const account = "berth";

const Contents = z.object({
  rrsets: z.array(
    z.object({
      name: z.string(),
      type: z.string(),
      ttl: z.number(),
      records: z.array(z.object({ content: z.string() })),
      comments: z.array(z.object({ content: z.string(), account: z.string() })).default([]),
    }),
  ),
});

type PowerDnsSettings = {
  apiUrl: string;
  apiKey: string;
  serverId: string;
  zone: string;
  /** The records below this name are listed. */
  domain: string;
  /** Written to each record that this installation creates. */
  owner: string;
};

/**
 * PowerDNS's HTTP API (https://doc.powerdns.com/authoritative/http-api/zone.html). A comment marks the records as ours: it
 * is written and removed in one step with its set, and no resolver sees it, unlike a TXT record beside each name. The zone's
 * backend must support comments, as all SQL backends do.
 */
export function powerDnsZone({ apiUrl, apiKey, serverId, zone, domain, owner }: PowerDnsSettings): Zone {
  const url = new URL(
    `${apiUrl.replace(/\/$/, "")}/api/v1/servers/${encodeURIComponent(serverId)}/zones/${encodeURIComponent(`${zone}.`)}`,
  );
  const request = (init: { method?: string; body?: unknown }) =>
    ask("PowerDNS", url, { ...init, headers: { "X-API-Key": apiKey } }, (body) => {
      const refusal = z.object({ error: z.string() }).safeParse(body);
      return refusal.data?.error;
    });
  return {
    async list() {
      const answer = Contents.safeParse(await request({}));
      if (!answer.success) throw new ZoneError(`PowerDNS did not answer with the zone ${zone}.`, false);
      return answer.data.rrsets.flatMap(({ name, type, ttl, records, comments }): FoundSet[] => {
        const plain = name.replace(/\.$/, "").toLowerCase();
        if (plain !== domain && !plain.endsWith(`.${domain}`)) return [];
        return [
          {
            name: plain,
            type,
            contents: records.map(({ content }) => read(type, content)),
            ttlSeconds: ttl,
            proxied: false,
            ours: comments.some((comment) => comment.account === account && comment.content === owner),
            ids: [],
          },
        ];
      });
    },
    async apply(changes) {
      await request({ method: "PATCH", body: { rrsets: changes.map((change) => rrsetOf(change, owner)) } });
    },
  };
}

function rrsetOf({ wanted, found }: ZoneChange, owner: string): object {
  if (!wanted) return { name: `${found.name}.`, type: found.type, changetype: "DELETE" };
  return {
    name: `${wanted.name}.`,
    type: wanted.type,
    ttl: wanted.ttlSeconds,
    changetype: "REPLACE",
    records: wanted.contents.map((content) => ({ content: written(wanted.type, content), disabled: false })),
    comments: [{ account, content: owner }],
  };
}
