import { createHash } from "node:crypto";
import { isIP } from "node:net";
import type { Destination } from "./addresses.ts";

/** Forwards a port of the host to a container, for these sources only; checked per packet, not only per connection. */
export type PublicPort = {
  port: number;
  allow: readonly string[];
  address: string;
  containerPort: number;
};

export type Policy = {
  agentId: string;
  /** Bridges of tenants' sites; the containers of one bridge belong to one account and may communicate. */
  siteBridges: readonly string[];
  /** The bridge of build steps, which belong to all tenants and may not communicate. */
  buildBridge: string;
  nameservers: readonly string[];
  allowed: readonly Destination[];
  /**
   * The engine's own control group (v2), below the root. A Dockerfile's ADD and FROM make the engine itself connect
   * to any address; null if its group cannot be told from that of the host's other programs.
   */
  engineGroup: string | null;
  publicPorts: readonly PublicPort[];
  visitors?: Visitors | null | undefined;
  /** Of a container, at once. */
  maxConnections: number;
};
/**
 * The ingress's ports of TCP and of UDP (HTTP/3), and its connection limit per client address; null if only a proxy
 * connects.
 */
export type Visitors = {
  ports: readonly number[];
  udpPorts: readonly number[];
  maxPerAddress: number;
  /** Networks of proxies, through which many visitors come. */
  unlimited?: readonly string[];
};
export type Family = 4 | 6;
type Rule = readonly string[];

/**
 * Networks that no tenant may reach: cloud metadata, the operator's networks, carrier-grade NAT, benchmarks, other
 * tenants.
 */
const refused: Record<Family, readonly string[]> = {
  4: [
    "10.0.0.0/8",
    "100.64.0.0/10",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "192.0.0.0/24",
    "198.18.0.0/15",
    // Azure's metadata (WireServer), and its name server.
    "168.63.129.16/32",
  ],
  // fd00:ec2::254 (metadata) is in fc00::/7; the last three lead to IPv4.
  6: ["fc00::/7", "fe80::/10", "fec0::/10", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16"],
};
const reject = (family: Family): Rule => [
  "-j",
  "REJECT",
  "--reject-with",
  family === 4 ? "icmp-admin-prohibited" : "icmp6-adm-prohibited",
];

/**
 * An interface name has at most 15 characters; four characters of the agent's id distinguish its bridges from another
 * agent's.
 */
export const bridgePrefix = (agentId: string): string => `bth${agentId.slice(0, 4)}`;
export const siteBridgePattern = (agentId: string): string => `${bridgePrefix(agentId)}+`;
export const bridgeName = (agentId: string, network: string): string =>
  `${bridgePrefix(agentId)}${createHash("sha256").update(network).digest("hex").slice(0, 8)}`;

/** Each agent has its own chains, so that agents on one engine do not undo each other's. */
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
    visitorsOverUdp: name("QUIC"),
    /** Exists in both the filter and the nat table. */
    publicPorts: name("WAYS"),
  };
}

const add = (chain: string, ...rule: string[]): Rule => ["-A", chain, ...rule];

/** The rules of all our chains, as argument arrays. RETURN leaves a packet to Docker's own rules. */
export function firewallRules(policy: Policy, family: Family): Rule[] {
  const { forward, input, output, outside, host, engine, many, visitors, visitorsOverUdp, publicPorts } =
    chainNames(policy.agentId);
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
    ...(policy.visitors?.unlimited ?? [])
      .filter((network) => network.includes(":") === (family === 6))
      .flatMap((network) =>
        Object.entries({ tcp: policy.visitors?.ports, udp: policy.visitors?.udpPorts }).flatMap(
          ([protocol, ports = []]) =>
            ports.map((port) =>
              add(input, "-s", network, "-p", protocol, "--dport", String(port), "-j", "RETURN"),
            ),
        ),
      ),
    ...(policy.visitors?.ports ?? []).map((port) =>
      add(input, ..."! -i lo -p tcp --dport".split(" "), String(port), "-j", visitors),
    ),
    ...(policy.visitors?.udpPorts ?? []).map((port) =>
      add(input, ..."! -i lo -p udp --dport".split(" "), String(port), "-j", visitorsOverUdp),
    ),
    // Traffic of forwarded ports, in both directions; connections opened by a site do not match.
    ...policy.siteBridges.flatMap((bridge) => [
      add(forward, "-o", bridge, ...translated, "--ctdir", "ORIGINAL", "-j", publicPorts),
      add(forward, "-i", bridge, ...translated, "--ctdir", "REPLY", "-j", publicPorts),
    ]),
    ...publicPortsOf(policy, family).map(({ source, port, address, containerPort }) =>
      add(
        publicPorts,
        ...`-p tcp -m conntrack --ctorigsrc ${source} --ctorigdstport ${port}`.split(" "),
        ...`--ctreplsrc ${address} --ctreplsrcport ${containerPort} -j ACCEPT`.split(" "),
      ),
    ),
    // Also ends open connections whose source was removed from the list.
    add(publicPorts, "-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset"),
    ...policy.siteBridges.map((bridge) =>
      add(forward, "-i", bridge, "-m", "physdev", "--physdev-is-bridged", "-j", "RETURN"),
    ),
    // Before any exception: a build step may spoof another one's gateway and receive its traffic to the internet.
    add(forward, "-i", policy.buildBridge, "-o", policy.buildBridge, ...reject(family)),
    ...bridges.map((bridge) => add(forward, "-i", bridge, "-j", outside)),
    ...bridges.map((bridge) => add(input, "-i", bridge, "-j", host)),
    ...(policy.engineGroup === null
      ? []
      : [add(output, "-m", "cgroup", "--path", policy.engineGroup, "-j", engine)]),
    ...exceptions.flatMap((rule) => [outside, host, engine].map((chain) => add(chain, ...rule))),
    // The host's own resolver, which Docker queries on the containers' behalf.
    ...["udp", "tcp"].map((protocol) =>
      add(engine, "-o", "lo", "-p", protocol, "--dport", "53", "-j", "RETURN"),
    ),
    ...policy.siteBridges.map((bridge) => add(engine, "-o", bridge, ...reject(family))),
    // Published ports of the operator's other containers.
    ...[policy.buildBridge, "br-+"].map((bridge) => add(engine, "-o", bridge, "-j", "RETURN")),
    ...refused[family].map((network) => add(engine, "-d", network, ...reject(family))),
    add(engine, "-o", "lo", ...reject(family)),
    ...refused[family].map((network) => add(outside, "-d", network, ...reject(family))),
    add(host, ...reject(family)),
  ];
}

/**
 * Limits connections per container, because the host has one connection table, which also serves its visitors; and
 * per visitor (a /64 in IPv6), to protect the ingress's memory. Replacing these rules resets their counts, so each
 * has a chain of its own that is kept.
 */
export function countingRules(
  { agentId, visitors, maxConnections }: Pick<Policy, "agentId" | "visitors" | "maxConnections">,
  family: Family,
): { chain: string; rule: Rule | null }[] {
  const counting = (chain: string, above: number, bits: number, what: string, ...refusal: Rule) =>
    add(
      chain,
      ...`${what}-m conntrack --ctstate NEW -m connlimit --connlimit-above ${above}`.split(" "),
      ...`--connlimit-mask ${bits} --connlimit-saddr`.split(" "),
      ...refusal,
    );
  const { many, visitors: visiting, visitorsOverUdp } = chainNames(agentId);
  const ofContainer = counting(many, maxConnections, family === 4 ? 32 : 128, "", ...reject(family));
  const refusal = ["-j", "REJECT", "--reject-with", "tcp-reset"];
  const bits = family === 4 ? 32 : 64;
  const ofVisitor = visitors && counting(visiting, visitors.maxPerAddress, bits, "-p tcp ", ...refusal);
  // Not answered: the address of a packet of UDP may be anybody's.
  const overUdp =
    visitors && counting(visitorsOverUdp, visitors.maxPerAddress, bits, "-p udp ", "-j", "DROP");
  return [
    { chain: many, rule: ofContainer },
    { chain: visiting, rule: ofVisitor ?? null },
    { chain: visitorsOverUdp, rule: overUdp ?? null },
  ];
}

const translated = ["-p", "tcp", "-m", "conntrack", "--ctstate", "DNAT"];

/** Containers have IPv4 addresses only. */
const publicPortsOf = (policy: Policy, family: Family) =>
  family === 6
    ? []
    : policy.publicPorts.flatMap(({ allow, ...one }) =>
        allow.filter((source) => !source.includes(":")).map((source) => ({ ...one, source })),
      );

/** The nat rules of the forwarded ports: only for packets to this host, and not from any container. */
function publicPortRules(policy: Policy): Rule[] {
  const { publicPorts } = chainNames(policy.agentId);
  return [
    ...["bth+", ...policy.siteBridges, policy.buildBridge].map((bridge) =>
      add(publicPorts, "-i", bridge, "-j", "RETURN"),
    ),
    ...publicPortsOf(policy, 4).map(({ source, port, address, containerPort }) =>
      add(
        publicPorts,
        ...`-s ${source} -p tcp -m addrtype --dst-type LOCAL --dport ${port}`.split(" "),
        ...`-j DNAT --to-destination ${address}:${containerPort}`.split(" "),
      ),
    ),
  ];
}

/** IPv6 neighbour discovery: without it, nothing on a network finds its gateway. */
const neighbours = ["neighbour-solicitation", "neighbour-advertisement", "router-solicitation"].map(
  (type) => ["-p", "ipv6-icmp", "--icmpv6-type", type, "-j", "RETURN"],
);

const linesOf = (rules: readonly Rule[]): string[] => rules.map((rule) => rule.join(" "));

/** The input of `iptables-restore --noflush`: our chains are replaced in one step, all others stay. */
export function restoreInput(policy: Policy, family: Family): string {
  const kept = countingRules(policy, family).map(({ chain }) => chain);
  const chains = Object.values(chainNames(policy.agentId))
    .filter((chain) => !kept.includes(chain))
    .map((chain) => `:${chain} - [0:0]`);
  const publicPorts = [
    `:${chainNames(policy.agentId).publicPorts} - [0:0]`,
    ...linesOf(publicPortRules(policy)),
  ];
  const filter = ["*filter", ...chains, ...linesOf(firewallRules(policy, family)), "COMMIT"];
  const addresses = family === 4 ? ["*nat", ...publicPorts, "COMMIT"] : [];
  return [...filter, ...addresses, ""].join("\n");
}

/**
 * The commands that make a chain of Docker's or the kernel's jump to ours before any rule but ours.
 * @param listing the output of `iptables -S`
 */
export function hookCommands(listing: string, parent: string, chain: string): Rule[] {
  const rules = listing.split("\n").filter((line) => line.startsWith(`-A ${parent} `));
  const at = rules.indexOf(`-A ${parent} -j ${chain}`);
  if (at >= 0 && rules.slice(0, at).every((rule) => rule.includes(" -j BERTH-"))) return [];
  const insert: Rule = ["-I", parent, "1", "-j", chain];
  return at < 0 ? [insert] : [insert, ["-D", parent, String(at + 2)]];
}
