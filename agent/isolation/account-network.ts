import type { Engine } from "../docker/engine.ts";
import { networkLabels, networkName } from "../docker/specs.ts";
import { bridgeName } from "./rules.ts";

type On = { engine: Engine; agentId: string };

/** Pending operations by network. */
const lanes = new Map<string, Promise<unknown>>();

/** Runs one operation at a time: engines refuse to create two networks with the same bridge concurrently. */
async function alone<T>(network: string, work: () => Promise<T>): Promise<T> {
  const before = lanes.get(network) ?? Promise.resolve();
  const mine = before.then(work, work);
  lanes.set(network, mine);
  try {
    return await mine;
  } finally {
    if (lanes.get(network) === mine) lanes.delete(network);
  }
}

/**
 * Ensures that the account's network exists while `make` creates a container on it; concurrent cleanup does not
 * remove it.
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
