import * as z from "zod";

/** What the responder answers from: one file, replaced as a whole. */
export const RouteTable = z.object({
  version: z.number().int().nonnegative(),
  /** Site id → its names and where they lead; `target` null: the site is stopped. */
  sites: z.record(
    z.string(),
    z.object({
      hostnames: z.array(z.string()),
      target: z
        .object({ containerId: z.string(), address: z.ipv4(), port: z.number().int().min(1).max(65535) })
        .nullable(),
    }),
  ),
});
export type RouteTable = z.infer<typeof RouteTable>;

export const emptyTable: RouteTable = { version: 0, sites: {} };

/** Where requests for one name go: a container, the page of a stopped site, or the page that knows no such site. */
export type Answer = { address: string; port: number } | "parked" | "unknown";

/** Host name → answer, for look-ups. Names are compared in lower case. */
export function byHostname(table: RouteTable): Map<string, Answer> {
  const names = new Map<string, Answer>();
  for (const { hostnames, target } of Object.values(table.sites))
    for (const hostname of hostnames) names.set(hostname.toLowerCase(), target ?? "parked");
  return names;
}
