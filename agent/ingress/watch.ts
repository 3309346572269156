import http from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { loopbackOf, type IngressSettings } from "./caddy.ts";
import { peersAddress } from "./hop.ts";
import { processesWith } from "./processes.ts";
import { log } from "../log.ts";

/** What answers neither of two questions is hung. A machine that is busy answers within the deadline. */
const lookMs = 2000;
const deadlineMs = 4000;
/** What was replaced is starting. */
const startMs = 20_000;
/** What was replaced in vain is replaced less and less often: every few minutes at last. */
const mostDoublings = 3;
/** A timer that is so late tells that this process itself was held up, and no answer could be heard. */
const lateMs = 1000;

type Part = {
  name: string;
  /** Rejects or does not end where it is hung. */
  asks: (signal: AbortSignal) => Promise<void>;
  replace: () => Promise<void>;
  /** For the operator, where it cannot be replaced or that does not help. */
  advice: string;
};

/**
 * Looks whether what all sites' requests go through answers, and replaces what does not: it runs, so nobody else would.
 * @param parts each is asked through those before it, and not judged while one of them does not answer
 * @param options.onProblem is told why sites stay unanswered and what to do, and null once all parts answer
 */
export async function watchIngress(
  parts: readonly Part[],
  options: {
    signal: AbortSignal;
    onReplaced: (name: string) => void;
    onProblem: (problem: string | null) => void;
    lookMs?: number;
    startMs?: number;
  },
): Promise<void> {
  const { signal, onReplaced, onProblem } = options;
  let judgedFrom = performance.now() + (options.startMs ?? startMs);
  let replacements = 0;
  while (!signal.aborted) {
    await delay(options.lookMs ?? lookMs, undefined, { signal, ref: false }).catch(() => undefined);
    if (signal.aborted || performance.now() < judgedFrom) continue;
    const hung = await firstHung(parts, options.lookMs ?? lookMs, signal);
    if (signal.aborted) continue;
    if (!hung) {
      replacements = 0;
      onProblem(null);
      continue;
    }
    const problem = `The ${hung.name} of this host does not answer, so no site can be served: ${hung.advice}`;
    if (replacements > 0) onProblem(problem);
    judgedFrom =
      performance.now() + (options.startMs ?? startMs) * 2 ** Math.min(replacements++, mostDoublings);
    log("error", `The ${hung.name} does not answer: it is replaced, and sites answer once it is there again`);
    await hung
      .replace()
      .then(() => onReplaced(hung.name))
      .catch((error: unknown) => {
        log("error", `The ${hung.name} was not replaced`, { error });
        onProblem(problem);
      });
  }
}

async function firstHung(
  parts: readonly Part[],
  pauseMs: number,
  signal: AbortSignal,
): Promise<Part | undefined> {
  for (const part of parts) {
    if (await answers(part, signal)) continue;
    // Whoever supervises it may be starting it.
    await delay(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
    if (!(await answers(part, signal))) return part;
  }
  return undefined;
}

async function answers({ asks }: Part, signal: AbortSignal): Promise<boolean> {
  const began = performance.now();
  try {
    await asks(AbortSignal.any([signal, AbortSignal.timeout(deadlineMs)]));
    return true;
  } catch {
    return performance.now() - began > deadlineMs + lateMs;
  }
}

/** Any answer will do. */
const ask = (
  {
    address = "127.0.0.1",
    port,
    path = "/",
    host,
  }: { address?: string; port: number; path?: string; host: string },
  signal: AbortSignal,
): Promise<void> =>
  new Promise((resolve, reject) => {
    http
      .get(
        { host: address, port, path, headers: { Host: host }, agent: false, signal },
        (response) => void response.resume().on("end", resolve).on("error", reject),
      )
      .on("error", reject);
  });

/** The responder is ended, and started by whoever supervises it; the container of Caddy is made anew. */
export function partsOf(
  { address, port, responderPort, statusPort }: IngressSettings,
  { routesFile, renewCaddy }: { routesFile: string; renewCaddy: () => Promise<void> },
): Part[] {
  const outside = loopbackOf(address);
  return [
    {
      name: "responder",
      asks: (signal) => ask({ port: statusPort, path: "/.berth/version", host: "127.0.0.1" }, signal),
      async replace() {
        const found = processesWith([routesFile, String(responderPort), String(statusPort)]);
        if (found.length === 0) throw new Error("It does not run: see that its supervisor does");
        for (const id of found) process.kill(id, "SIGKILL");
      },
      advice: `see that its supervisor runs, and what its log says (journalctl -u berth-responder); another program may have port ${responderPort} or ${statusPort} (ss -tulnp shows it).`,
    },
    {
      name: "ingress",
      // A name of no site, which Caddy asks the responder for; then at an address of our Caddy's own: where another program has
      // one of its ports, it does not run.
      async asks(signal) {
        await ask({ address: outside, port, host: "nobody.invalid" }, signal);
        await ask({ address: peersAddress, port: statusPort, host: "nobody.invalid" }, signal);
      },
      replace: renewCaddy,
      advice: "see the log of its container, which docker ps lists as berth-ingress-….",
    },
  ];
}
