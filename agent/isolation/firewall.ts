import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { engineGroup } from "./engine-group.ts";
import { nameservers, type Destination } from "./addresses.ts";
import { showBridged } from "./bridged.ts";
import { enlargeConnectionTable } from "./kernel-bounds.ts";
import { log } from "../log.ts";
import { chainNames, countingRules, hookCommands, restoreInput, type Family, type Policy } from "./rules.ts";

type Bridges = Pick<Policy, "siteBridges" | "buildBridge" | "visitors"> & {
  publicPorts?: Policy["publicPorts"];
  maxConnections?: number;
};

const tools: Record<Family, string> = { 4: "iptables", 6: "ip6tables" };
/** Docker and others change the tables too: wait for their lock. */
const wait = ["-w", "10"];

function run(program: string, args: readonly string[], input = ""): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(program, args, { timeout: 30_000 }, (error, stdout, stderr) => {
      if (!error) return resolve(stdout);
      const reason =
        "code" in error && error.code === "ENOENT" ? "not installed" : stderr.trim() || error.message;
      reject(new Error(`${program} ${args.join(" ")}: ${reason}`, { cause: error }));
    });
    child.stdin?.on("error", () => undefined).end(input);
  });
}

/**
 * The chains in which forwarded packets are refused before Docker accepts them: DOCKER-USER, created here if the
 * engine is not up yet, and FORWARD as long as it does not jump there.
 */
async function forwardHooks(family: Family, listing: string): Promise<string[]> {
  if (family === 4 && !listing.includes("-N DOCKER-USER\n"))
    await run(tools[family], [...wait, "-N", "DOCKER-USER"]).catch(() => "there already");
  const direct = listing.includes("-A FORWARD -j DOCKER-USER\n") ? [] : ["FORWARD"];
  return family === 4 || direct.length === 0 ? ["DOCKER-USER", ...direct] : direct;
}

const warned = new Set<string>();

/** Unchanged rules are left alone, which keeps their counts. A kernel without connlimit still isolates tenants. */
async function ensureCounting(policy: Policy, family: Family): Promise<void> {
  const tool = tools[family];
  for (const { chain, rule } of countingRules(policy, family)) {
    const listed = await run(tool, [...wait, "-S", chain]).catch(() => null);
    if (listed === [`-N ${chain}`, ...(rule ? [rule.join(" ")] : []), ""].join("\n")) continue;
    await run(tool, [...wait, listed === null ? "-N" : "-F", chain]);
    if (rule)
      await run(tool, [...wait, ...rule]).catch((error: unknown) => {
        if (!warned.has(chain))
          log("warn", "Connections are not limited per container and per visitor", { chain, error });
        warned.add(chain);
      });
  }
}

const ofContainers = ["-i", "veth+", "-o", "veth+"];

/**
 * Between two containers, frames with tags of VLANs pass none of the rules of IP, though a receiver takes off tags without a number.
 * The same for all agents of a host, so that none takes the rules away.
 */
async function refuseTagged(): Promise<void> {
  try {
    const listing = await run("ebtables", ["-L", "FORWARD"]);
    if (listing.split("\n").filter((rule) => rule.includes(`${ofContainers.join(" ")} -j DROP`)).length >= 2)
      return;
    for (const tag of ["802_1Q", "0x88a8"])
      await run("ebtables", ["-I", "FORWARD", ...ofContainers, "-p", tag, "-j", "DROP"]);
  } catch (error) {
    if (!warned.has("tags"))
      log("warn", "Build steps can send each other frames with tags of VLANs: install ebtables", { error });
    warned.add("tags");
  }
}

const families = async (): Promise<Family[]> =>
  (await readFile("/proc/net/if_inet6", "utf8").catch(() => "")) === "" ? [4] : [4, 6];

/** Replaces the rules of each family in one step, whatever was there. @throws with iptables' message */
export async function ensureFirewall(
  agentId: string,
  bridges: Bridges,
  allowed: readonly Destination[],
  group?: string | null,
): Promise<void> {
  const files = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
  const texts = await Promise.all(files.map((file) => readFile(file, "utf8").catch(() => "")));
  const policy: Policy = {
    agentId,
    publicPorts: [],
    maxConnections: 10_000,
    ...bridges,
    nameservers: nameservers(...texts),
    allowed,
    engineGroup: group === undefined ? await engineGroup() : group,
  };
  const { forward, input, output, publicPorts } = chainNames(agentId);
  for (const family of await families()) {
    const tool = tools[family];
    await ensureCounting(policy, family);
    await run(`${tool}-restore`, [...wait, "--noflush"], restoreInput(policy, family));
    await showBridged(tool);
    const listing = await run(tool, [...wait, "-S"]);
    for (const [parent, chain] of [
      ...(await forwardHooks(family, listing)).map((parent) => [parent, forward] as const),
      ["INPUT", input],
      ["OUTPUT", output],
    ] as const)
      // Lists the rules again before a change, because others change the tables too.
      if (hookCommands(listing, parent, chain).length > 0)
        for (const command of hookCommands(await run(tool, [...wait, "-S", parent]), parent, chain))
          await run(tool, [...wait, ...command]);
  }
  await refuseTagged();
  await enlargeConnectionTable();
  const translation = [...wait, "-t", "nat"];
  for (const command of hookCommands(
    await run(tools[4], [...translation, "-S", "PREROUTING"]),
    "PREROUTING",
    publicPorts,
  ))
    await run(tools[4], [...translation, ...command]);
}

/** Removes the rules of a test's agent. An agent that only stops keeps them, because its sites keep running. */
export async function removeFirewall(agentId: string): Promise<void> {
  const chains = chainNames(agentId);
  for (const family of await families()) {
    const tool = tools[family];
    const tryTo = (...args: string[]) =>
      run(tool, [...wait, ...args]).then(
        () => true,
        () => false,
      );
    for (const parent of ["DOCKER-USER", "FORWARD", "INPUT", "OUTPUT"])
      for (const chain of [chains.forward, chains.input, chains.output])
        while (await tryTo("-D", parent, "-j", chain));
    while (await tryTo("-t", "nat", "-D", "PREROUTING", "-j", chains.publicPorts));
    for (const change of ["-F", "-X"]) await tryTo("-t", "nat", change, chains.publicPorts);
    for (const chain of Object.values(chains)) await tryTo("-F", chain);
    for (const chain of Object.values(chains)) await tryTo("-X", chain);
  }
}
