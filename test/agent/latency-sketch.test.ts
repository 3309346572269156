import { expect, it } from "vitest";
import { addTo, bucketOf, quantileMs, type LatencySketch } from "../../agent/running/latency-sketch.ts";

const sketchOf = (all: readonly number[]): LatencySketch => {
  const sketch: LatencySketch = new Map();
  addTo(
    sketch,
    all.map((us) => [bucketOf(us), 1] as const),
  );
  return sketch;
};
const exactMs = (all: readonly number[], share: number) =>
  (all.toSorted((a, b) => a - b)[Math.ceil(share * all.length) - 1] ?? 0) / 1000;

it.each([
  ["alike", Array.from({ length: 1000 }, () => 4321)],
  ["spread over five powers of ten", Array.from({ length: 5000 }, (_, index) => 200 * 1.0025 ** index)],
  ["of two kinds", Array.from({ length: 1000 }, (_, index) => (index % 20 === 0 ? 2_000_000 : 1500))],
])("quantiles of durations %s are within 2 %% of the true ones", (_, all) => {
  for (const share of [0.5, 0.95, 0.99]) {
    const error = Math.abs((quantileMs(sketchOf(all), share) ?? 0) / exactMs(all, share) - 1);
    expect(error).toBeLessThanOrEqual(0.0201);
  }
});

it("two sketches together are the sketch of all", () => {
  const [some, others] = [
    Array.from({ length: 99 }, (_, i) => 150 * i),
    Array.from({ length: 50 }, (_, i) => 1e6 + i),
  ];
  const together = sketchOf(some);
  addTo(together, sketchOf(others));
  expect(together).toEqual(sketchOf([...some, ...others]));
});

it("of no requests there is no quantile, and the shortest and longest have a bucket", () => {
  expect(quantileMs(new Map(), 0.5)).toBeNull();
  expect(quantileMs(sketchOf([0]), 0.5)).toBeCloseTo(0.1, 2);
  expect(quantileMs(sketchOf([Infinity]), 0.5)).toBeGreaterThan(3_500_000);
});
