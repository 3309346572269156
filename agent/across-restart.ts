import { setTimeout as delay } from "node:timers/promises";
import { isSilence } from "./docker/answer-timeout.ts";
import type { Engine } from "./docker/engine.ts";
import { JobError, type JobRun } from "./job.ts";

/** For what is not done again: only an engine that answers shows whether it was away. */
const backWithinMs = 60_000;
const againMs = 500;
/** An engine that hangs accepts connections, and answers all of them once it goes on. */
const promptMs = 2000;

const engineLost =
  "The host's Docker engine was restarted or did not answer while this was in progress: try again, or ask the operator about the host.";

/**
 * Does a job's work, and once more if the engine went away or hung meanwhile and is back in time.
 * @param mayRepeat asked after the failure
 * @param patienceMs how long what may be repeated waits for the engine
 * @param work everything it does once the signal aborts must have no effect
 * @throws JobError that names the engine, if that was the cause and the work is not done again; otherwise what the work throws
 */
export async function acrossRestart<T>(
  engine: Pick<Engine, "losses" | "ping">,
  { signal, log }: Pick<JobRun, "signal" | "log">,
  mayRepeat: () => boolean,
  patienceMs: number,
  work: (over: AbortSignal) => Promise<T>,
): Promise<T> {
  const losses = engine.losses();
  const over = new AbortController();
  try {
    return await work(over.signal);
  } catch (error) {
    if (signal.aborted) throw error;
    const repeats = mayRepeat();
    const answers = await untilAnswer(engine, signal, repeats ? patienceMs : backWithinMs, () => {
      if (repeats) log("The host's Docker engine does not answer: this waits for it.");
    });
    // Only once it has answered is the end of the connection before that known here.
    if (answers === "at once" && engine.losses() === losses && !isSilence(error)) throw error;
    if (answers === "not" || !repeats) throw new JobError(engineLost, { cause: error });
    over.abort(new Error("The engine was away, and the work is done once more"));
    log("The host's Docker engine was restarted or did not answer: this is done once more.");
    return acrossRestart(engine, { signal, log }, () => false, patienceMs, work);
  }
}

async function untilAnswer(
  engine: Pick<Engine, "ping">,
  signal: AbortSignal,
  withinMs: number,
  onSilence: () => void,
): Promise<"at once" | "later" | "not"> {
  const end = performance.now() + withinMs;
  let isSilent = false;
  const say = () => {
    if (!isSilent) onSilence();
    isSilent = true;
  };
  const timer = setTimeout(say, promptMs);
  try {
    while (performance.now() < end) {
      // It may hang, as a socket does that systemd keeps for an engine that does not come up.
      const patience = delay(end - performance.now(), false, { signal, ref: false });
      const answered = engine.ping().then(
        () => true,
        () => false,
      );
      if (await Promise.race([answered, patience])) return isSilent ? "later" : "at once";
      say();
      await delay(againMs, undefined, { signal });
    }
    return "not";
  } finally {
    clearTimeout(timer);
  }
}
