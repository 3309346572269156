/**
 * Durations in buckets that each span 4 %, so that a quantile is within 2 % of the true one whatever their distribution, and sketches
 * add up without a further error: DDSketch (Masson, Rim and Lee, VLDB 2019) without its collapsing, as a request's duration is
 * bounded. Bucket → count.
 */
export type LatencySketch = Map<number, number>;

const gamma = 1.02 / 0.98;
const logGamma = Math.log(gamma);
/** A tenth of a millisecond to an hour, in microseconds. */
const [leastUs, mostUs] = [100, 3_600_000_000];

export const bucketOf = (durationUs: number): number =>
  Math.ceil(Math.log(Math.min(mostUs, Math.max(leastUs, durationUs))) / logGamma);

/** The middle of a bucket, in milliseconds. */
const middleMs = (bucket: number): number => Math.round((2 * gamma ** bucket) / (gamma + 1)) / 1000;

export function addTo(sketch: LatencySketch, other: Iterable<readonly [number, number]>): void {
  for (const [bucket, count] of other) sketch.set(bucket, (sketch.get(bucket) ?? 0) + count);
}

/** Milliseconds that this share of all requests took at most; null: there are none. */
export function quantileMs(sketch: LatencySketch, share: number): number | null {
  const buckets = [...sketch].toSorted(([a], [b]) => a - b);
  const count = buckets.reduce((sum, [, one]) => sum + one, 0);
  let rank = Math.max(1, Math.ceil(share * count));
  const found = buckets.find(([, one]) => (rank -= one) <= 0);
  return found ? middleMs(found[0]) : null;
}
