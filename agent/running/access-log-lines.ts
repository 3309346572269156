import * as z from "zod";
import { jsonIn } from "../../protocol/json.ts";
import { seenFields } from "../ingress/access-log.ts";

/** What Caddy is told to write (`ingress/access-log.ts`). Its zero for a status: no answer was begun. */
const Entry = z
  .object({
    /** In nanoseconds. */
    ts: z.number(),
    bytes_read: z.int().nonnegative(),
    duration: z.number().nonnegative(),
    size: z.int().nonnegative(),
    status: z.int().min(0).max(999),
    uuid: z.string().nullish(),
    upstream: z.string().nullish(),
    /** Of a site with rules: what Caddy sent it on to, once it was decided on. */
    served: z.string().nullish(),
    seen: z
      .string()
      .transform((text) => text.split("\n"))
      .refine((fields) => fields.length === seenFields.length),
  })
  .transform(
    ({ seen: [method = "", host = "", uri = "", address = "", agent = "", referrer = ""], ...rest }) => ({
      ...rest,
      method,
      host,
      uri,
      address,
      agent,
      referrer,
    }),
  );
export type Entry = z.infer<typeof Entry>;

/** Text without escapes. */
const text = String.raw`([^"\\]*)`;
/**
 * The line of nearly every request, in the order in which Caddy writes it. Read by itself, as parsing and checking JSON
 * would take six times as long, and a busy site has thousands of lines a second.
 */
const common = new RegExp(
  String.raw`\{"ts":(\d+),"bytes_read":(\d+),"duration":(\d+),"size":(\d+),"status":(\d{1,3})` +
    ["uuid", "served", "upstream"].map((key) => `(?:,"${key}":(?:null|"${text}"))?`).join("") +
    `,"seen":"${seenFields.map(() => text).join(String.raw`\\n`)}"` +
    String.raw`\}\n`,
  "y",
);

/** The requests in whole lines of the log. What is half a line, as after Caddy was killed, or none of its access log is left out. */
export function entriesIn(lines: string): Entry[] {
  const entries: Entry[] = [];
  for (let at = 0; at < lines.length;) {
    common.lastIndex = at;
    const found = common.exec(lines);
    if (found) {
      const [, ts, bytesRead, duration, size, status, uuid, served, upstream] = found;
      const [, , , , , , , , , method = "", host = "", uri = "", address = "", agent = "", referrer = ""] =
        found;
      entries.push({
        ts: Number(ts),
        bytes_read: Number(bytesRead),
        duration: Number(duration),
        size: Number(size),
        status: Number(status),
        uuid,
        served,
        upstream,
        method,
        host,
        uri,
        address,
        agent,
        referrer,
      });
      at = common.lastIndex;
    } else {
      const end = lines.indexOf("\n", at);
      const entry = Entry.safeParse(jsonIn(lines.slice(at, end))).data;
      if (entry) entries.push(entry);
      at = end + 1;
    }
  }
  return entries;
}
