import { randomBytes } from "node:crypto";
import { afterAll, expect, it } from "vitest";
import { networkName } from "../../agent/docker/specs.ts";
import { agentIdOf, removeSites } from "../../scripts/lib/engine-objects.ts";
import { leaveAccountNetwork, onAccountNetwork } from "../../agent/isolation/account-network.ts";
import { engine } from "../support/engine.ts";

const hostToken = randomBytes(8).toString("hex");
const agentId = agentIdOf(hostToken);
const accountId = `acc_${agentId}`;
const on = { engine, agentId };
const made: string[] = [];

const make = (name: string): Promise<string> =>
  onAccountNetwork(on, accountId, async (network) => {
    const id = await engine.createContainer({
      name: `berth-test-${name}-${agentId}`,
      Image: "node:24-bookworm-slim",
      Cmd: ["sleep", "60"],
      Labels: { "berth.test": agentId },
      HostConfig: { NetworkMode: network },
    });
    made.push(id);
    return id;
  });

afterAll(async () => {
  for (const id of made) await engine.removeContainer(id);
  await engine.removeNetwork(networkName(accountId));
});

it("an account's first sites start at once, though one of them fails and is tidied up behind meanwhile", async () => {
  const leave = () => leaveAccountNetwork(on, accountId);
  const begun = [make("a"), leave(), make("b"), leave(), make("c"), leave()];
  await Promise.all(begun);
  for (const id of made) await engine.startContainer(id);
  const network = networkName(accountId);
  const addresses = await Promise.all(
    made.map(async (id) => (await engine.inspectContainer(id))?.addresses[network]),
  );
  expect(new Set(addresses).size).toBe(3);
});

it("the network goes with the last that uses it", async () => {
  await leaveAccountNetwork(on, accountId);
  await expect(engine.subnet(networkName(accountId))).resolves.toContain("/");
  for (const id of made.splice(0)) await engine.removeContainer(id);
  await leaveAccountNetwork(on, accountId);
  await expect(engine.subnet(networkName(accountId))).rejects.toThrow("404");
});

it("the end of a service removes a network that no container is left to name, and none that another's uses", async () => {
  const network = networkName(accountId);
  await make("another");
  await removeSites(hostToken);
  await expect(engine.subnet(network)).resolves.toContain("/");
  for (const id of made.splice(0)) await engine.removeContainer(id);
  await removeSites(hostToken);
  await expect(engine.subnet(network)).rejects.toThrow("404");
});
