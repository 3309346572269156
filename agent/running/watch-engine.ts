import { answerTimeout } from "../docker/answer-timeout.ts";
import type { Engine } from "../docker/engine.ts";
import { log } from "../log.ts";
import { every } from "./every.ts";

const lookMs = 5000;
/** It may hang, as a socket does that systemd keeps for an engine that does not come up. */
const patienceMs = 10_000;

const silence =
  "Its Docker engine does not answer, so it takes no jobs, which wait. Look for the reason on the host (systemctl status docker), and restart the engine.";

/**
 * Calls back when the engine no longer answers, and when it does again.
 * @returns a function that answers what is wrong, with what to do; null: it answered
 */
export function watchEngine(
  engine: Pick<Engine, "ping">,
  signal: AbortSignal,
  onChange: (answers: boolean) => void,
  everyMs = lookMs,
): () => string | null {
  let answered = true;
  every(everyMs, signal, async () => {
    const answers = await engine.ping(answerTimeout(patienceMs)).then(
      () => true,
      () => false,
    );
    if (signal.aborted || answers === answered) return;
    answered = answers;
    log(
      answers ? "info" : "error",
      answers ? "The Docker engine answers again" : "The Docker engine does not answer; jobs wait",
    );
    onChange(answers);
  });
  return () => (answered ? null : silence);
}
