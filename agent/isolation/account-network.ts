import { alone } from "../alone.ts";
import type { Engine } from "../docker/engine.ts";
import { networkLabels, networkName } from "../docker/specs.ts";
import { bridgeName } from "./rules.ts";

type On = { engine: Engine; agentId: string };

/**
 * Ensures that the account's network exists while `make` creates a container on it; concurrent cleanup does not
 * remove it. Engines refuse to create two networks with the same bridge concurrently.
 */
export function onAccountNetwork<T>(
  { engine, agentId }: On,
  accountId: string,
  make: (network: string) => Promise<T>,
): Promise<T> {
  const network = networkName(accountId);
  return alone(network, async () => {
    await engine.ensureNetwork(network, bridgeName(agentId, network), networkLabels(accountId));
    return make(network);
  });
}

/** Removes the account's network if nothing uses it. */
export function leaveAccountNetwork({ engine }: Pick<On, "engine">, accountId: string): Promise<void> {
  const network = networkName(accountId);
  return alone(network, () => engine.removeNetwork(network));
}
