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
      // A Caddy of before does not say when a request began.
      .refine((fields) => [seenFields.length - 1, seenFields.length].includes(fields.length)),
  })
  .transform(
    ({
      seen: [method = "", host = "", uri = "", address = "", agent = "", referrer = "", beganAtMs = ""],
      duration,
      ...rest
    }) => ({
      ...rest,
      duration: durationOf(duration, rest.ts, beganAtMs),
      method,
      host,
      uri,
      address,
      agent,
      referrer,
    }),
  );
export type Entry = z.infer<typeof Entry>;

/** In nanoseconds. Caddy says 0 of an answer that was broken off, by the visitor or the app. */
const durationOf = (duration: number, ts: number, beganAtMs: string): number =>
  duration === 0 && beganAtMs !== "" ? Math.max(0, ts - Number(beganAtMs) * 1e6) : duration;

/** Text without escapes. */
const text = String.raw`([^"\\]*)`;
const also = (key: string) => `(?:,"${key}":(?:null|"${text}"))?`;
/**
 * The line of nearly every request, in the order in which Caddy writes it. Read by itself, as parsing and checking JSON
 * would take six times as long, and a busy site has thousands of lines a second.
 */
const common = new RegExp(
  String.raw`\{"ts":(\d+),"bytes_read":(\d+),"duration":(\d+),"size":(\d+),"status":(\d{1,3})` +
    also("uuid") +
    `,"seen":"${seenFields.map(() => text).join(String.raw`\\n`)}"` +
    also("served") +
    also("upstream") +
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
      const [, ts, bytesRead, duration, size, status, uuid, ...more] = found;
      const [method = "", host = "", uri = "", address = "", agent = "", referrer = "", beganAtMs = ""] =
        more;
      const [served, upstream] = more.slice(seenFields.length);
      entries.push({
        ts: Number(ts),
        bytes_read: Number(bytesRead),
        duration: durationOf(Number(duration), Number(ts), beganAtMs),
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
