import { expect, it } from "vitest";
import { fencedHost } from "../../agent/fenced-host.ts";
import type { Host } from "../../agent/host.ts";

const done: string[] = [];
const host = {
  engine: { removeContainer: async (id: string) => void done.push(`remove ${id}`) },
  ingress: {
    newest: (_: string, { hostnames }: { hostnames: string[] }) => hostnames,
    hostnames: () => ["a.localhost"],
    current: () => null,
    fallback: () => null,
    sites: () => ["site"],
    lost: () => [],
    park: async (siteId: string) => void done.push(`park ${siteId}`),
  },
  retire: (siteId: string) => void done.push(`retire ${siteId}`),
} as unknown as Host;

it("a run that is over changes nothing any more, and reads on: a refusal that nobody awaits would end the agent", async () => {
  const over = new AbortController();
  const early = fencedHost(host, over.signal);
  await early.engine.removeContainer("one");
  await early.ingress.park("site", []);
  early.retire("site", []);
  expect(done.splice(0)).toEqual(["remove one", "park site", "retire site"]);

  over.abort(new Error("over"));
  const late = fencedHost(host, over.signal);
  await expect(late.engine.removeContainer("two")).rejects.toThrow("over");
  await expect(late.ingress.park("site", [])).rejects.toThrow("over");
  late.retire("site", []);
  expect(done).toEqual([]);
  const reads = [
    late.ingress.newest("site", { hostnames: ["b.localhost"] }),
    late.ingress.hostnames("site"),
    late.ingress.current("site"),
    late.ingress.fallback("site"),
    late.ingress.sites(),
    late.ingress.lost(),
  ];
  expect(reads).toEqual([["b.localhost"], ["a.localhost"], null, null, ["site"], []]);
});
