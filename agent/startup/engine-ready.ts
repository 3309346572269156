import { setTimeout as delay } from "node:timers/promises";
import type { AgentConfig } from "../config.ts";
import { createEngine } from "../docker/client.ts";
import type { Engine } from "../docker/engine.ts";
import { leakyEngine, nftablesLimit, unfitReason } from "../docker/unfit.ts";
import { unfitGit } from "../image-build/git-version.ts";
import { ingressContainer } from "../ingress/container.ts";
import { portsTaken } from "../ingress/ports.ts";
import { log } from "../log.ts";
import { every } from "../running/every.ts";

const oldLookMs = 3_600_000;

export async function untilEngineAnswers(engine: Engine): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await engine.ping();
    } catch (error) {
      if (attempt % 30 === 0) log("warn", "The Docker engine does not answer yet", { error });
      await delay(1000);
    }
  }
}

/** The operator may fix the engine without restarting this process, so it keeps checking. */
export async function untilEngineIsFit(engine: Engine): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    const facts = await engine.facts();
    const reason = unfitReason(facts);
    if (reason === null) return facts.usesNftables ? log("warn", nftablesLimit) : undefined;
    if (attempt % 30 === 0) log("error", reason);
    await delay(10_000);
  }
}

/**
 * Answers what of this machine is too old to be safe, and what to do; both programs may be updated while the agent runs. No
 * reason to be no host: Debian 12 has such a Docker, which is safe for repositories that its operator trusts, and Ubuntu
 * 22.04 such a Git.
 */
export async function watchOldPrograms(engine: Engine, signal: AbortSignal): Promise<() => string[]> {
  const look = async () =>
    [leakyEngine(await engine.facts()), await unfitGit()].filter((one) => one !== null);
  let old = await look();
  for (const one of old) log("warn", one);
  every(oldLookMs, signal, async () => void (old = await look().catch(() => old)));
  return () => old;
}

/** Prints whether Berth works with this machine's engine and ports, and what is old about its engine and Git. @returns the exit code */
export async function checkMachine({
  dockerSocket: socketPath,
  agentId,
  ingress,
}: Pick<AgentConfig, "dockerSocket" | "agentId" | "ingress">): Promise<number> {
  const oldGit = await unfitGit();
  if (oldGit !== null) console.error(oldGit);
  const engine = createEngine({ socketPath });
  const facts = await engine
    .facts()
    .catch((error: unknown) => console.error(`Docker does not answer at ${socketPath}: ${String(error)}`));
  if (!facts) return 1;
  const reason = unfitReason(facts);
  if (reason !== null) {
    console.error(reason);
    return 1;
  }
  const leaks = leakyEngine(facts);
  if (leaks !== null) console.error(leaks);
  if (facts.usesNftables) console.log(nftablesLimit);
  const own = await engine.inspectContainer(ingressContainer(agentId, ingress).spec.name);
  const taken = own?.running ? null : await portsTaken(ingress);
  if (taken !== null) console.error(taken);
  return taken === null ? 0 : 1;
}
