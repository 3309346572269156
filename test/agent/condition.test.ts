import { expect, it } from "vitest";
import { diskCondition } from "../../agent/running/condition.ts";

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
