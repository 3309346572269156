import { constants } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { parseListeners, socketTables, type Listener } from "../docker/listening.ts";
import { startedAgainAt, type ContainerState, type Engine } from "../docker/engine.ts";
import { secretsIn } from "../docker/specs.ts";
import { connects, probe as ask, type Probe } from "../ingress/probe.ts";
import { JobError } from "../job.ts";
import { devServerOf } from "./dev-server.ts";
import { exitAdvice, goOn, lastSaid } from "./exit-advice.ts";
import { activityOf, commandsOf, Standstill } from "./standstill.ts";
import { plain, redactor } from "../../protocol/redact.ts";

/** So long an app that takes connections may give no answer by HTTP before that is enough: it speaks another protocol. */
const connectsMs = 3000;
/** Between two looks at what it listens on. */
const lookMs = 500;

/** Waits until the new container answers. @throws JobError with the honest reason why it does not */
export async function waitUntilHealthy(
  engine: Engine,
  container: ContainerState,
  probe: Probe,
  timeoutSeconds: number,
  signal: AbortSignal,
): Promise<void> {
  const started = performance.now();
  const over = new AbortController();
  const stop = AbortSignal.any([signal, over.signal]);
  let exited: number | undefined;
  const exit = engine.firstExit(container.id, container.startedAt ?? new Date(), stop).then(
    (code) => {
      exited = code;
    },
    // Whether it ends is not known: it is asked as long as there is time.
    () => new Promise<void>(() => undefined),
  );
  const standstill = new Standstill();
  let lookedAt = started;
  let connectsSince: number | undefined;
  let last: true | string = "was not asked";
  try {
    // Often at first, when most apps come up; seldom later.
    for (
      let pauseMs = 5;
      ;
      pauseMs = performance.now() - started < 2000 ? 10 : Math.min(pauseMs * 1.3, 250)
    ) {
      signal.throwIfAborted();
      const askedAt = performance.now();
      const asked = ask(probe, timeoutSeconds * 1000 - (performance.now() - started), stop);
      // Where nothing is any more, a connection hangs for seconds.
      last = await Promise.race([asked, exit.then(() => last)]);
      if (last === true) return;
      if (exited !== undefined) throw new JobError(await exitReason(engine, container.id, exited, started));
      connectsSince = last === connects ? (connectsSince ?? askedAt) : undefined;
      const now = performance.now();
      const isOver = now - started > timeoutSeconds * 1000;
      if (connectsSince !== undefined && (isOver || now - connectsSince >= connectsMs)) return;
      if (isOver) throw new JobError(await silenceReason(container, probe, timeoutSeconds, last));
      if (now - lookedAt >= lookMs) {
        lookedAt = now;
        const activity = await activityOf(container);
        if (activity && standstill.take(activity, now) && !mayAnswer(activity.listeners, probe.port, last))
          throw new JobError(await silenceReason(container, probe, timeoutSeconds, last));
      }
      await Promise.race([delay(pauseMs, undefined, { signal: stop }), exit]);
    }
  } finally {
    over.abort();
  }
}

/** How an app that should have answered ended. */
export async function exitReason(
  engine: Engine,
  containerId: string,
  exitCode: number,
  started: number,
): Promise<string> {
  const state = await engine.inspectContainer(containerId);
  // The lines of another start would hide why this one ended.
  const lines = await engine.lastLines(containerId, 100, startedAgainAt(state));
  const elapsedMs = performance.now() - started;
  const seconds = (elapsedMs / 1000).toFixed(1);
  if (state && (await engine.ranOutOfMemory(state, new Date(Date.now() - elapsedMs - 1000))))
    return `The app was killed after ${seconds} s because it used more memory than its pack has: choose a larger pack or use less.`;
  // Before they are cut: half a secret is known to nobody.
  const redact = redactor(state ? secretsIn(state) : []);
  const told = lines.map((line) => redact(plain(line)));
  const shown = lastSaid(told);
  const said = shown === "" ? " It printed nothing." : ` Its last lines: ${shown}`;
  const advice = exitCode === 0 ? goOn : exitAdvice(told);
  const signal = Object.entries(constants.signals).find(([, number]) => number === exitCode - 128)?.[0];
  return `The app exited with code ${exitCode}${signal ? ` (${signal})` : ""} after ${seconds} s: ${advice}.${said}`;
}

/** It listens where it is asked, so that what it answers may change. */
const mayAnswer = (listeners: readonly Listener[], port: number, last: string): boolean =>
  listeners.some((one) => one.port === port && !one.loopbackOnly) && !last.includes("ECONNREFUSED");

async function silenceReason(
  container: ContainerState,
  { port, path }: Probe,
  timeoutSeconds: number,
  last: string,
): Promise<string> {
  const listeners = parseListeners(...(await socketTables(container.pid)));
  const own = listeners.find((listener) => listener.port === port);
  const dev =
    own && !own.loopbackOnly
      ? null
      : devServerOf(
          commandsOf(container),
          listeners.map((one) => one.port),
        );
  if (dev !== null && listeners.length > 0)
    return `The start command runs a development server (${dev}), which listens on ${listeners.map(shown).join(", ")}: let it start what serves the built site on port ${port}.`;
  if (own?.loopbackOnly) return `The app listens on 127.0.0.1:${port} only: let it listen on 0.0.0.0.`;
  if (own && last.includes("ECONNREFUSED"))
    return `The app listens on port ${port}, but not at its IPv4 address: let it listen on 0.0.0.0.`;
  if (own && path !== null)
    return `The health check ${path} did not succeed within ${timeoutSeconds} s (it ${last}): fix it, change healthCheckPath or give it longer with startTimeoutSeconds.`;
  const others = listeners.filter(({ loopbackOnly }) => !loopbackOnly).map((listener) => listener.port);
  if (others.length > 0)
    return `Nothing listens on port ${port}, but the app listens on ${others.join(", ")}: set the site's port to it, or let the app use the PORT variable.`;
  if (listeners.length > 0)
    return `Nothing listens on port ${port}, but the app listens on ${listeners.map(shown).join(", ")} only: let it listen on 0.0.0.0 and the port in the PORT variable.`;
  return `Nothing listens on port ${port} after ${timeoutSeconds} s, and the app still runs: let it listen on 0.0.0.0 and the port in the PORT variable, or give it longer with startTimeoutSeconds. A bot or worker, which needs no port, needs something beside it that answers there.`;
}

const shown = ({ port, loopbackOnly }: Listener): string => `${loopbackOnly ? "127.0.0.1:" : ""}${port}`;
