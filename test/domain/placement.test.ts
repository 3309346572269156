import { describe, expect, it } from "vitest";
import { freeMemoryMb, noRoomReason, reserveMb } from "../../worker/domain/placement.ts";

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
  const host = (region: string | null, freeMb: number) => ({ region, freeMb });
  it("names what was missing: hosts, the region, or memory", () => {
    expect(noRoomReason({ memoryMb: 512, region: "eu" }, [], 60)).toMatch(/^No host was up/);
    expect(noRoomReason({ memoryMb: 512, region: "eu" }, [host("us", 9000)], 60)).toMatch(
      /^No host in region eu was up/,
    );
    expect(
      noRoomReason({ memoryMb: 512, region: "eu" }, [host("us", 9000), host("eu", 300), host("eu", -5)], 60),
    ).toMatch(/^No host in region eu had the 512 MB .* the most free memory was 300 MB\./);
  });
});
