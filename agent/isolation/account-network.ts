import type { Engine } from "../docker/engine.ts";
import { networkLabels, networkName } from "../docker/specs.ts";
import { bridgeName } from "./rules.ts";

type On = { engine: Engine; agentId: string };

/** Of each network, what is under way with it. */
const lanes = new Map<string, Promise<unknown>>();

/** One at a time: engines refuse two at once that make a network with the same bridge. */
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

/** The account's network is there when `make` makes a container on it: what tidies up meanwhile does not take it away. */
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

/** The account's network goes, where nothing uses it. */
export function leaveAccountNetwork({ engine }: Pick<On, "engine">, accountId: string): Promise<void> {
  const network = networkName(accountId);
  return alone(network, () => engine.removeNetwork(network));
}
