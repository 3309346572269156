import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { JobError, type JobRun } from "../job.ts";
import { baseImages } from "./dockerfile/instructions.ts";
import { orAborted } from "./or-aborted.ts";

/** Makes a base image that no registry gives. @throws JobError when it could not */
export type ImageProvider = (image: string, run: Pick<JobRun, "signal" | "log">) => Promise<void>;

type Making = { made: Promise<void>; listeners: Set<JobRun["log"]>; end: () => void };

const timeoutMinutes = 20;
const known = new Set<string>(Object.values(baseImages));
/** Of databases, and of the ingress. */
const ofServers = /^(?:postgres|mariadb|redis|caddy):[\w.-]+$/;

/** Named by us, and never by a tenant alone. */
export const isOurs = (image: string): boolean => known.has(image) || ofServers.test(image);

/** The base images of a Dockerfile of ours: names of our own list, never one that a tenant wrote. */
export const basesOf = (dockerfile: string): string[] => [
  ...new Set(
    [...dockerfile.matchAll(/^FROM (\S+)/gm)].flatMap(([, name = ""]) => (known.has(name) ? name : [])),
  ),
];

/**
 * The operator's program, run with the image's name as its last argument. Several deployments that need the same image
 * wait for one run; it ends when none of them waits any more.
 */
export function openImageProvider(
  command: readonly [string, ...string[]],
  timeoutMs = timeoutMinutes * 60_000,
): ImageProvider {
  const making = new Map<string, Making>();
  return async (image, { signal, log }) => {
    signal.throwIfAborted();
    if (!isOurs(image)) throw new Error(`${image} is not one of our base images`);
    let one = making.get(image);
    if (one) log(`${image} is being made on this host already; waiting for it.`);
    else {
      making.set(image, (one = start(command, image, timeoutMs)));
      const forget = () => making.delete(image);
      one.made.then(forget, forget);
    }
    const { made, listeners, end } = one;
    // A wrapper of its own, as two deployments may share a function.
    const listener: JobRun["log"] = (text, stream) => log(text, stream);
    listeners.add(listener);
    try {
      await orAborted(made, signal);
    } finally {
      listeners.delete(listener);
      if (listeners.size === 0) end();
    }
  };
}

/** Nothing of ours, the host's token above all, is the program's business. */
const environment = () =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("BERTH_")));

function start([program, ...args]: readonly [string, ...string[]], image: string, timeoutMs: number): Making {
  const listeners: Making["listeners"] = new Set();
  // Its standard input closes when this process is gone, however that ended.
  const child = spawn(program, [...args, image], {
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
    env: environment(),
  });
  child.stdin.on("error", () => undefined);
  for (const [stream, output] of [
    ["stdout", child.stdout],
    ["stderr", child.stderr],
  ] as const)
    createInterface({ input: output }).on("line", (line) => {
      for (const listener of listeners) listener(line, stream);
    });
  const kill = (signal: NodeJS.Signals) => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal);
    } catch {
      // Gone.
    }
  };
  let killing: NodeJS.Timeout | undefined;
  const end = () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    kill("SIGTERM");
    killing ??= setTimeout(() => kill("SIGKILL"), 10_000).unref();
  };
  let isLate = false;
  const timer = setTimeout(() => ((isLate = true), end()), timeoutMs);
  const made = new Promise<void>((resolve, reject) => {
    const failed = (why: string) =>
      reject(
        new JobError(
          `The base image ${image} cannot be pulled, and making it on this host ${why}: try again later, or ask the operator.`,
        ),
      );
    child.once("error", (error) => failed(`did not begin (${error.message})`));
    child.once("close", (code) =>
      code === 0
        ? resolve()
        : failed(
            isLate
              ? `took more than ${Math.round(timeoutMs / 60_000)} minutes`
              : `failed (see the deployment's log)`,
          ),
    );
  }).finally(() => {
    clearTimeout(timer);
    clearTimeout(killing);
  });
  // Nobody may wait any more.
  made.catch(() => undefined);
  return { made, listeners, end };
}
