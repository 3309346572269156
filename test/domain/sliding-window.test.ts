import { expect, it } from "vitest";
import { admit } from "../../worker/domain/sliding-window.ts";

const window = { limit: 2, windowMs: 1000 };

it("admits as many as the limit, says how many are left and when the oldest goes", () => {
  expect(admit([], 5000, window)).toEqual({ admitted: true, hits: [5000], left: 1, resetMs: 1000 });
  expect(admit([5000], 5400, window)).toEqual({ admitted: true, hits: [5000, 5400], left: 0, resetMs: 600 });
  expect(admit([5000, 5400], 5999, window)).toEqual({
    admitted: false,
    hits: [5000, 5400],
    left: 0,
    resetMs: 1,
  });
});

it("lets one go when the window is over, to the millisecond", () => {
  expect(admit([5000, 5400], 6000, window)).toEqual({
    admitted: true,
    hits: [5400, 6000],
    left: 0,
    resetMs: 400,
  });
});

it("counts times ahead of a clock that stepped back, for one window at most", () => {
  expect(admit([6000, 6000], 5000, window).admitted).toBe(false);
  expect(admit([6001, 6001], 5000, window)).toEqual({
    admitted: true,
    hits: [5000],
    left: 1,
    resetMs: 1000,
  });
});
