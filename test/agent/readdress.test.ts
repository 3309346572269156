import { afterEach, expect, it, vi } from "vitest";
import type { Host } from "../../agent/host.ts";
import type { Target } from "../../agent/ingress/ingress.ts";
import { openReaddressing } from "../../agent/sites/readdress.ts";

const ending = new AbortController();
afterEach(() => ending.abort());

it("a container's new address that could not be written is written once the disk takes it, and only the newest", async () => {
  let target: Target = { containerId: "c", address: "10.0.0.1", port: 3000 };
  let now = "10.0.0.2";
  let isWritable = false;
  let refusals = 0;
  const written: (string | null)[] = [];
  const host = {
    engine: {
      inspectContainer: async () => ({ running: true, pid: 0, labels: {}, addresses: { "berth-": now } }),
    },
    ingress: {
      current: () => [target],
      fallback: () => null,
      readdress: async ([next]: Target[]) => {
        if (!isWritable) {
          refusals++;
          throw new Error("EIO: i/o error, write");
        }
        if (next) target = next;
        written.push(target.address);
      },
    },
  } as unknown as Host;
  const readdressNext = openReaddressing(host, ending.signal, 1);
  readdressNext("site_1", "c");
  await vi.waitUntil(() => refusals > 1);
  now = "10.0.0.3";
  readdressNext("site_1", "c");
  isWritable = true;
  await vi.waitUntil(() => written.length > 0);
  expect(written).toEqual(["10.0.0.3"]);
});
