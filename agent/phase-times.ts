import type { Durations } from "../protocol/agent/jobs.ts";
import type { DeploymentStep } from "../protocol/deployment-steps.ts";

/** The start of a phase, by a monotonic clock. */
export type PhaseStart = [phase: DeploymentStep, atMs: number];
/** In milliseconds; null: there was no such step. `release` is that of the release command. */
type Times = Durations & { release?: number | null };

const steps = ["clone", "build", "release", "start", "swap"] as const;
const done = {
  clone: "fetched",
  build: "built",
  release: "released",
  start: "started",
  swap: "put into service",
};
const doing: Record<DeploymentStep, string> = {
  clone: "fetching",
  build: "building",
  start: "starting",
  swap: "putting it into service",
};

/** Durations of completed phases; the last one started is the one that failed. */
export function durationsOf(began: readonly PhaseStart[]): Durations {
  const durations: Durations = { clone: null, build: null, start: null, swap: null };
  for (const [index, [phase, start]] of began.entries()) {
    const next = began[index + 1];
    if (next) durations[phase] = Math.round(next[1] - start);
  }
  return durations;
}

/** For a deployment's log: `Fetched in 0.09 s, built in 2.4 s.` null: there was no step. */
export function timesTaken(times: Times): string | null {
  return sentence(completed(times));
}

/** The same of a deployment that ended before it was live: `Fetched in 0.09 s, ended after 2.4 s of building.` */
export function timesUntilEnd(began: readonly PhaseStart[], nowMs: number): string | null {
  const last = began.at(-1);
  if (!last) return null;
  return sentence([
    ...completed(durationsOf(began)),
    `ended after ${seconds(nowMs - last[1])} of ${doing[last[0]]}`,
  ]);
}

function completed(times: Times): string[] {
  return steps.flatMap((step) => {
    const took = times[step] ?? null;
    return took === null ? [] : [`${done[step]} in ${seconds(took)}`];
  });
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(ms < 100 ? 2 : 1)} s`;

const sentence = (parts: readonly string[]): string | null => {
  const text = parts.join(", ");
  return text === "" ? null : `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
};
