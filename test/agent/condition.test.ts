import { expect, it } from "vitest";
import { clockProblem, diskCondition } from "../../agent/running/condition.ts";

const mebibyte = 1024 * 1024;

it("a disk is reported with what a deployment needs, in steps, which never hide that there is too little or enough", async () => {
  let freeMb = 0;
  let cleared = 0;
  const room = {
    disk: async () => ({ freeBytes: freeMb * mebibyte, totalBytes: 100_000 * mebibyte }),
    makeRoom: async () => void cleared++,
  };
  const reported = async (free: number, minFreeMb: number | null = 3000) => {
    freeMb = free;
    const disk = await diskCondition(room, minFreeMb);
    return [disk?.freeMb, disk?.neededMb];
  };
  expect(await reported(9000)).toEqual([8960, 3000]);
  expect(await reported(9001)).toEqual([8960, 3000]);
  expect(await reported(3000)).toEqual([3000, 3000]);
  expect(cleared).toBe(0);
  // The build cache, which goes first, is given up meanwhile.
  expect([await reported(2999.5), cleared]).toEqual([[2816, 3000], 1]);
  expect(await reported(3000, 2900)).toEqual([2900, 2900]);
  expect(await reported(4999, null)).toEqual([4864, 5000]);
  expect(await diskCondition({ ...room, disk: async () => null }, null)).toBe(null);
});

it("a clock that is more than a minute away from the control plane's is a problem, which does not change with each look", () => {
  const now = Date.parse("2026-11-29T12:00:00Z");
  const off = (seconds: number) => clockProblem(now + seconds * 1000, now);
  expect([clockProblem(now, null), off(0), off(59), off(-59)]).toEqual([null, null, null, null]);
  expect(off(61)).toMatch(/^Its clock is 1 minute ahead of the service's: .*timedatectl set-ntp true/);
  expect(off(-720)).toBe(off(-721.5));
  expect(off(-720)).toContain("is 12 minutes behind the service's");
  expect(off(7300)).toContain("2 hours ahead");
  expect(off(-200_000)).toContain("2 days behind");
});
