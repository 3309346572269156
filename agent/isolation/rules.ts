import { createHash } from "node:crypto";
import { isIP } from "node:net";
import type { Destination } from "./addresses.ts";

/** From a port of the host to a container, for these sources only; each packet is held to it, not each connection. */
export type Way = {
  port: number;
  allow: readonly string[];
  address: string;
  containerPort: number;
};

export type Policy = {
  agentId: string;
  /** Bridges whose containers are tenants' sites; those of one bridge are one account's and may talk. */
  siteBridges: readonly string[];
  /** The bridge of build steps, which are of all tenants and may not talk. */
  buildBridge: string;
  nameservers: readonly string[];
  allowed: readonly Destination[];
  /**
   * The engine's own control group (v2), below the root. A Dockerfile's ADD and FROM make the engine itself ask any
   * address; null where it cannot be told from the host's other programs.
   */
  engineGroup: string | null;
  ways: readonly Way[];
  visitors?: Visitors | null | undefined;
};
/** Where the ingress listens, and how many connections of one address it has at most; null where a proxy is all that connects. */
export type Visitors = { ports: readonly number[]; maxPerAddress: number };
export type Family = 4 | 6;
type Rule = readonly string[];

/** What no tenant reaches: cloud metadata, the operator's networks, carrier-grade NAT, benchmarks, other tenants. */
const refused: Record<Family, readonly string[]> = {
  4: [
    "10.0.0.0/8",
    "100.64.0.0/10",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "192.0.0.0/24",
    "198.18.0.0/15",
  ],
  // fd00:ec2::254 (metadata) is in fc00::/7; the last three are ways to IPv4.
  6: ["fc00::/7", "fe80::/10", "fec0::/10", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16"],
};
const reject = (family: Family): Rule => [
  "-j",
  "REJECT",
  "--reject-with",
  family === 4 ? "icmp-admin-prohibited" : "icmp6-adm-prohibited",
];

/** A kernel's interface name has at most 15 characters; the agent's four tell its bridges from another agent's. */
const prefix = (agentId: string) => `bth${agentId.slice(0, 4)}`;
export const siteBridgePattern = (agentId: string): string => `${prefix(agentId)}+`;
export const bridgeName = (agentId: string, network: string): string =>
  `${prefix(agentId)}${createHash("sha256").update(network).digest("hex").slice(0, 8)}`;

/** Its own chains, so that agents on one engine do not undo each other's. */
export function chainNames(agentId: string) {
  const name = (part: string) => `BERTH-${agentId.slice(0, 4)}-${part}`;
  return {
    forward: name("FORWARD"),
    input: name("INPUT"),
    output: name("OUTPUT"),
    outside: name("OUTSIDE"),
    host: name("HOST"),
    engine: name("ENGINE"),
    many: name("MANY"),
    visitors: name("VISITORS"),
    /** In the tables of filters and of addresses. */
    ways: name("WAYS"),
  };
}

const add = (chain: string, ...rule: string[]): Rule => ["-A", chain, ...rule];

/** The rules of all our chains, as argument arrays. RETURN leaves a packet to Docker's own rules. */
export function firewallRules(policy: Policy, family: Family): Rule[] {
  const { forward, input, output, outside, host, engine, many, visitors, ways } = chainNames(policy.agentId);
  const bridges = [...policy.siteBridges, policy.buildBridge];
  const exceptions = [
    ["-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED", "-j", "RETURN"],
    ...(family === 6 ? neighbours : []),
    ...policy.nameservers
      .filter((address) => isIP(address) === family)
      .flatMap((address) =>
        ["udp", "tcp"].map((protocol) => ["-d", address, "-p", protocol, "--dport", "53", "-j", "RETURN"]),
      ),
    ...policy.allowed
      .filter((destination) => destination.family === family)
      .map(({ network, port }) => [
        "-d",
        network,
        ...(port === null ? [] : ["-p", "tcp", "--dport", String(port)]),
        "-j",
        "RETURN",
      ]),
  ];
  return [
    ...bridges.flatMap((bridge) => [forward, input].map((chain) => add(chain, "-i", bridge, "-j", many))),
    ...(policy.visitors?.ports ?? []).map((port) =>
      add(input, ..."! -i lo -p tcp --dport".split(" "), String(port), "-j", visitors),
    ),
    // What a port of the host led to: both directions of it, and no connection that a site began.
    ...policy.siteBridges.flatMap((bridge) => [
      add(forward, "-o", bridge, ...translated, "--ctdir", "ORIGINAL", "-j", ways),
      add(forward, "-i", bridge, ...translated, "--ctdir", "REPLY", "-j", ways),
    ]),
    ...waysOf(policy, family).map(({ source, port, address, containerPort }) =>
      add(
        ways,
        ...`-p tcp -m conntrack --ctorigsrc ${source} --ctorigdstport ${port}`.split(" "),
        ...`--ctreplsrc ${address} --ctreplsrcport ${containerPort} -j ACCEPT`.split(" "),
      ),
    ),
    // Also what was open before its source went from the list.
    add(ways, "-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset"),
    ...policy.siteBridges.map((bridge) =>
      add(forward, "-i", bridge, "-m", "physdev", "--physdev-is-bridged", "-j", "RETURN"),
    ),
    // Before any exception: a build may take itself for another's gateway, and be sent what that one asks of the internet.
    add(forward, "-i", policy.buildBridge, "-o", policy.buildBridge, ...reject(family)),
    ...bridges.map((bridge) => add(forward, "-i", bridge, "-j", outside)),
    ...bridges.map((bridge) => add(input, "-i", bridge, "-j", host)),
    ...(policy.engineGroup === null
      ? []
      : [add(output, "-m", "cgroup", "--path", policy.engineGroup, "-j", engine)]),
    ...exceptions.flatMap((rule) => [outside, host, engine].map((chain) => add(chain, ...rule))),
    // The host's own resolver, in whose stead Docker asks.
    ...["udp", "tcp"].map((protocol) =>
      add(engine, "-o", "lo", "-p", protocol, "--dport", "53", "-j", "RETURN"),
    ),
    ...policy.siteBridges.map((bridge) => add(engine, "-o", bridge, ...reject(family))),
    // The way of published ports to other containers of the operator's.
    ...[policy.buildBridge, "br-+"].map((bridge) => add(engine, "-o", bridge, "-j", "RETURN")),
    ...refused[family].map((network) => add(engine, "-d", network, ...reject(family))),
    add(engine, "-o", "lo", ...reject(family)),
    ...refused[family].map((network) => add(outside, "-d", network, ...reject(family))),
    add(host, ...reject(family)),
  ];
}

const maxConnections = 10_000;

/**
 * The host has one table of connections, for its visitors too: what one container has open may not fill it; nor may one visitor's
 * take the ingress' memory, whose network is /64 in IPv6. Set anew, these rules count from nothing: so each has a chain of its
 * own, which stays.
 */
export function countingRules(
  { agentId, visitors }: Pick<Policy, "agentId" | "visitors">,
  family: Family,
): { chain: string; rule: Rule | null }[] {
  const counting = (chain: string, above: number, bits: number, what: string, ...refusal: Rule) =>
    add(
      chain,
      ...`${what}-m conntrack --ctstate NEW -m connlimit --connlimit-above ${above}`.split(" "),
      ...`--connlimit-mask ${bits} --connlimit-saddr`.split(" "),
      ...refusal,
    );
  const { many, visitors: visiting } = chainNames(agentId);
  const ofContainer = counting(many, maxConnections, family === 4 ? 32 : 128, "", ...reject(family));
  const refusal = ["-j", "REJECT", "--reject-with", "tcp-reset"];
  const ofVisitor =
    visitors && counting(visiting, visitors.maxPerAddress, family === 4 ? 32 : 64, "-p tcp ", ...refusal);
  return [
    { chain: many, rule: ofContainer },
    { chain: visiting, rule: ofVisitor ?? null },
  ];
}

const translated = ["-p", "tcp", "-m", "conntrack", "--ctstate", "DNAT"];

/** Containers have addresses of IPv4 only. */
const waysOf = (policy: Policy, family: Family) =>
  family === 6
    ? []
    : policy.ways.flatMap(({ allow, ...way }) =>
        allow.filter((source) => !source.includes(":")).map((source) => ({ ...way, source })),
      );

/** Where the ways lead, in the table of addresses: not for containers, whosever they are, and not beyond this host. */
export function wayRules(policy: Policy): Rule[] {
  const { ways } = chainNames(policy.agentId);
  return [
    ...["bth+", ...policy.siteBridges, policy.buildBridge].map((bridge) =>
      add(ways, "-i", bridge, "-j", "RETURN"),
    ),
    ...waysOf(policy, 4).map(({ source, port, address, containerPort }) =>
      add(
        ways,
        ...`-s ${source} -p tcp -m addrtype --dst-type LOCAL --dport ${port}`.split(" "),
        ...`-j DNAT --to-destination ${address}:${containerPort}`.split(" "),
      ),
    ),
  ];
}

/** Without these, nothing on an IPv6 network finds its gateway. */
const neighbours = ["neighbour-solicitation", "neighbour-advertisement", "router-solicitation"].map(
  (type) => ["-p", "ipv6-icmp", "--icmpv6-type", type, "-j", "RETURN"],
);

const linesOf = (rules: readonly Rule[]): string[] => rules.map((rule) => rule.join(" "));

/** The input of `iptables-restore --noflush`: our chains are emptied and filled in one step, all others stay. */
export function restoreInput(policy: Policy, family: Family): string {
  const { many, visitors } = chainNames(policy.agentId);
  const chains = Object.values(chainNames(policy.agentId))
    .filter((chain) => chain !== many && chain !== visitors)
    .map((chain) => `:${chain} - [0:0]`);
  const ways = [`:${chainNames(policy.agentId).ways} - [0:0]`, ...linesOf(wayRules(policy))];
  const filter = ["*filter", ...chains, ...linesOf(firewallRules(policy, family)), "COMMIT"];
  const addresses = family === 4 ? ["*nat", ...ways, "COMMIT"] : [];
  return [...filter, ...addresses, ""].join("\n");
}

/**
 * How a chain of Docker's or the kernel's comes to jump to ours before any rule but ours.
 * @param listing what `iptables -S` printed
 */
export function hookCommands(listing: string, parent: string, chain: string): Rule[] {
  const rules = listing.split("\n").filter((line) => line.startsWith(`-A ${parent} `));
  const at = rules.indexOf(`-A ${parent} -j ${chain}`);
  if (at >= 0 && rules.slice(0, at).every((rule) => rule.includes(" -j BERTH-"))) return [];
  const insert: Rule = ["-I", parent, "1", "-j", chain];
  return at < 0 ? [insert] : [insert, ["-D", parent, String(at + 2)]];
}
