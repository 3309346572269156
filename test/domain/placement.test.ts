import { describe, expect, it } from "vitest";
import { freeMemoryMb, noRoomAtHomeReason, noRoomReason, reserveMb } from "../../worker/domain/placement.ts";

describe("what a host can still take", () => {
  it("is its memory less a reserve and what its sites may use", () => {
    expect([1024, 5120, 65_536].map(reserveMb)).toEqual([512, 512, 6553]);
    expect(freeMemoryMb(4096, 1024)).toBe(2560);
  });

  it("is not known before its agent has said what it has", () => {
    expect(freeMemoryMb(null, 0)).toBeNull();
  });
});

describe("the reason of a site that no host took", () => {
  const host = (region: string | null, freeMb: number, hasDisk = true) => ({ region, freeMb, hasDisk });
  it("names what was missing: hosts, the region, or memory", () => {
    expect(noRoomReason({ memoryMb: 512, region: "eu" }, [], 60)).toMatch(/^No host was up/);
    expect(noRoomReason({ memoryMb: 512, region: "eu" }, [host("us", 9000)], 60)).toMatch(
      /^No host in region eu was up/,
    );
    expect(
      noRoomReason({ memoryMb: 512, region: "eu" }, [host("us", 9000), host("eu", 300), host("eu", -5)], 60),
    ).toMatch(/^No host in region eu had the 512 MB .* the most free memory was 300 MB\./);
    expect(noRoomReason({ memoryMb: 512, region: null }, [host("us", -5)], 60)).toMatch(
      /^No host had the 512 MB .* the most free memory was 0 MB\./,
    );
    expect(
      noRoomReason({ memoryMb: 512, region: "eu" }, [host("us", 9000), host("eu", 900, false)], 60),
    ).toMatch(/^The disk of each host in region eu was nearly full/);
    const one = [host("eu", 900, false), host("eu", 300)];
    expect(noRoomReason({ memoryMb: 512, region: "eu" }, one, 60)).toMatch(
      /the most free memory was 300 MB\./,
    );
    const linked = { memoryMb: 512, region: null, linked: "shop-data" };
    expect(noRoomReason(linked, [host(null, 300)], 60)).toMatch(
      /^The host of shop-data, which this site is linked to .* 512 MB .*; it has 300 MB\. .* remove the link, then deploy again\.$/,
    );
    expect(noRoomReason(linked, [host(null, 900, false)], 60)).toMatch(
      /^The disk of the host of shop-data, which this site is linked to .* remove the link, then deploy again\.$/,
    );
    expect(noRoomReason(linked, [], 60, "database")).toContain("this database is linked to");
    expect(noRoomAtHomeReason(512, -5, 60)).toContain("it has 0 MB");
  });

  it("says how to try again: a site is deployed, a database started", () => {
    const wanted = { memoryMb: 512, region: "eu" };
    for (const hosts of [[], [host("us", 9000)], [host("eu", 300)]]) {
      expect(noRoomReason(wanted, hosts, 60)).toMatch(/, then deploy again\.$/);
      expect(noRoomReason(wanted, hosts, 60, "database")).toMatch(/, then start it again\.$/);
    }
    expect(noRoomReason(wanted, [host("eu", 300)], 60, "database")).toContain("this database needs");
  });
});
