import { randomUUID } from "node:crypto";

type CloudflareRecord = {
  id: string;
  name: string;
  type: string;
  content: string;
  ttl: number;
  proxied: boolean;
  comment: string | null;
};

type Draft = Partial<CloudflareRecord>;

const failure = (status: number, code: number, message: string) =>
  Response.json({ success: false, errors: [{ code, message }], messages: [], result: null }, { status });

/**
 * One zone of Cloudflare's DNS API, on its wire format: list by pages with `name.endswith`, and `batch`, which takes effect
 * completely or not at all. Refuses what Cloudflare refuses: a wrong token, a CNAME beside other records, an identical record.
 */
export class CloudflareServer {
  readonly zoneId = "0123456789abcdef0123456789abcdef";
  readonly token = "cloudflare-token";
  records: CloudflareRecord[] = [];
  /** Requests since the start, such as `POST /batch`. */
  readonly asked: string[] = [];
  /** Answers 503, as an API that is down does. */
  isAway = false;
  /** Names that it refuses to write. */
  readonly refusedNames = new Set<string>();

  /** A record that somebody created by other means. */
  add(draft: Draft): CloudflareRecord {
    const record = {
      id: randomUUID(),
      ttl: 300,
      proxied: false,
      comment: null,
      ...draft,
    } as CloudflareRecord;
    this.records.push(record);
    return record;
  }

  async fetch(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const path = `/client/v4/zones/${this.zoneId}/dns_records`;
    this.asked.push(`${request.method} ${url.pathname.slice(path.length)}`);
    if (this.isAway) return new Response("upstream connect error", { status: 503 });
    if (request.headers.get("Authorization") !== `Bearer ${this.token}`)
      return failure(403, 10000, "Authentication error");
    if (url.pathname === path && request.method === "GET") return this.list(url.searchParams);
    if (url.pathname === `${path}/batch` && request.method === "POST")
      return this.batch((await request.json()) as Record<string, Draft[]>);
    return failure(404, 7003, "Could not route to the path");
  }

  private list(query: URLSearchParams): Response {
    const [page, perPage] = [Number(query.get("page") ?? 1), Number(query.get("per_page") ?? 100)];
    const all = this.records
      .filter(({ name }) => name.endsWith(query.get("name.endswith") ?? ""))
      .toSorted((one, other) => (one.name < other.name ? -1 : 1));
    const result = all.slice((page - 1) * perPage, page * perPage);
    const total_pages = Math.ceil(all.length / perPage);
    return Response.json({
      success: true,
      errors: [],
      messages: [],
      result,
      result_info: { page, per_page: perPage, count: result.length, total_count: all.length, total_pages },
    });
  }

  private batch({ deletes = [], patches = [], posts = [] }: Record<string, Draft[]>): Response {
    let next = structuredClone(this.records);
    for (const { id } of deletes) {
      if (!next.some((record) => record.id === id)) return failure(404, 81044, "Record does not exist.");
      next = next.filter((record) => record.id !== id);
    }
    for (const { id, ...draft } of patches) {
      const record = next.find((one) => one.id === id);
      if (!record) return failure(404, 81044, "Record does not exist.");
      const refusal = this.refusalOf(
        draft,
        next.filter((one) => one !== record),
      );
      if (refusal) return refusal;
      Object.assign(record, draft);
    }
    for (const draft of posts) {
      const refusal = this.refusalOf(draft, next);
      if (refusal) return refusal;
      const record = {
        id: randomUUID(),
        ttl: 1,
        proxied: false,
        comment: null,
        ...draft,
      } as CloudflareRecord;
      next.push(record);
    }
    this.records = next;
    return Response.json({ success: true, errors: [], messages: [], result: { deletes, patches, posts } });
  }

  private refusalOf(draft: Draft, others: readonly CloudflareRecord[]): Response | null {
    const { name = "", type, content, comment, ttl = 1, proxied } = draft;
    if (this.refusedNames.has(name)) return failure(400, 9000, "DNS name is invalid.");
    if ((comment ?? "").length > 100) return failure(400, 9214, "Comment is too long.");
    if (ttl !== 1 && (ttl < 60 || ttl > 86400 || proxied)) return failure(400, 9021, "Invalid TTL.");
    if (proxied && type === "TXT") return failure(400, 9004, "This record type cannot be proxied.");
    const here = others.filter((one) => one.name === name);
    if (here.some((one) => one.type === "CNAME" || type === "CNAME"))
      return failure(400, 81053, "An A, AAAA, or CNAME record with that host already exists.");
    if (here.some((one) => one.type === type && one.content === content))
      return failure(400, 81058, "An identical record already exists.");
    return null;
  }
}
