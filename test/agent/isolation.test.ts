import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { readConfig } from "../../agent/config.ts";
import type { Engine } from "../../agent/docker/engine.ts";
import { nameservers, parseDestination } from "../../agent/isolation/addresses.ts";
import { showBridged } from "../../agent/isolation/bridged.ts";
import { groupOfItsOwn } from "../../agent/isolation/engine-group.ts";
import { openIsolation, type FirewallMode } from "../../agent/isolation/isolation.ts";
import { enlargeConnectionTable, liftKernelBounds } from "../../agent/isolation/kernel-bounds.ts";
import {
  bridgeName,
  chainNames,
  countingRules,
  firewallRules,
  hookCommands,
  restoreInput,
  siteBridgePattern,
  type Policy,
} from "../../agent/isolation/rules.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const agentId = "0123456789abcdef";
const policy: Policy = {
  agentId,
  siteBridges: [siteBridgePattern(agentId)],
  buildBridge: "docker0",
  nameservers: ["10.0.0.2", "fd00::53"],
  allowed: [
    { family: 4, network: "10.1.0.0/16", port: null },
    { family: 4, network: "10.2.0.1", port: 3128 },
  ],
  engineGroup: "system.slice/docker.service",
  publicPorts: [],
  maxConnections: 10_000,
};
const least = {
  BERTH_URL: "https://berth.example",
  BERTH_HOST_TOKEN: `hst_0${"a".repeat(43)}`,
  BERTH_STATE_DIR: "/var/lib/berth",
};
const lines = (family: 4 | 6) => firewallRules(policy, family).map((rule) => rule.join(" "));

describe("the firewall's rules", () => {
  it("let replies, name servers and what the operator named pass before they refuse", () => {
    const outside = lines(4).filter((line) => line.startsWith("-A BERTH-0123-OUTSIDE "));
    expect(outside.map((line) => line.replace("-A BERTH-0123-OUTSIDE ", ""))).toEqual([
      "-m conntrack --ctstate RELATED,ESTABLISHED -j RETURN",
      "-d 10.0.0.2 -p udp --dport 53 -j RETURN",
      "-d 10.0.0.2 -p tcp --dport 53 -j RETURN",
      "-d 10.1.0.0/16 -j RETURN",
      "-d 10.2.0.1 -p tcp --dport 3128 -j RETURN",
      ...[
        "10.0.0.0/8",
        "100.64.0.0/10",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "192.0.0.0/24",
        "198.18.0.0/15",
        "168.63.129.16/32",
      ].map((network) => `-d ${network} -j REJECT --reject-with icmp-admin-prohibited`),
    ]);
  });

  it("leave of Azure's address for metadata only the name server, where the host uses it as one", () => {
    const azure = { ...policy, nameservers: ["168.63.129.16"] };
    const rules = firewallRules(azure, 4).map((rule) => rule.join(" "));
    for (const chain of ["OUTSIDE", "ENGINE"])
      expect(rules.filter((line) => line.startsWith(`-A BERTH-0123-${chain} -d 168.63.129.16`))).toEqual(
        [
          "168.63.129.16 -p udp --dport 53 -j RETURN",
          "168.63.129.16 -p tcp --dport 53 -j RETURN",
          "168.63.129.16/32 -j REJECT --reject-with icmp-admin-prohibited",
        ].map((rule) => `-A BERTH-0123-${chain} -d ${rule}`),
      );
  });

  it("refuse everything on the host itself that was not named", () => {
    const host = lines(4).filter((line) => line.startsWith("-A BERTH-0123-HOST "));
    expect(host.at(-1)).toBe("-A BERTH-0123-HOST -j REJECT --reject-with icmp-admin-prohibited");
    expect(host.filter((line) => line.includes("REJECT"))).toHaveLength(1);
    expect(lines(6).at(-1)).toBe("-A BERTH-0123-HOST -j REJECT --reject-with icmp6-adm-prohibited");
  });

  it("touch nothing but the bridges of sites and of builds, let one account's sites talk, and no builds", () => {
    const own = lines(4).filter((line) => /^-A BERTH-0123-(?:FORWARD|INPUT) /.test(line));
    expect(own).toEqual([
      "-A BERTH-0123-FORWARD -i bth0123+ -j BERTH-0123-MANY",
      "-A BERTH-0123-INPUT -i bth0123+ -j BERTH-0123-MANY",
      "-A BERTH-0123-FORWARD -i docker0 -j BERTH-0123-MANY",
      "-A BERTH-0123-INPUT -i docker0 -j BERTH-0123-MANY",
      "-A BERTH-0123-FORWARD -o bth0123+ -p tcp -m conntrack --ctstate DNAT --ctdir ORIGINAL -j BERTH-0123-WAYS",
      "-A BERTH-0123-FORWARD -i bth0123+ -p tcp -m conntrack --ctstate DNAT --ctdir REPLY -j BERTH-0123-WAYS",
      "-A BERTH-0123-FORWARD -i bth0123+ -m physdev --physdev-is-bridged -j RETURN",
      // Whatever it is addressed to: a build that takes itself for another's gateway would be asked in its stead.
      "-A BERTH-0123-FORWARD -i docker0 -o docker0 -j REJECT --reject-with icmp-admin-prohibited",
      "-A BERTH-0123-FORWARD -i bth0123+ -j BERTH-0123-OUTSIDE",
      "-A BERTH-0123-FORWARD -i docker0 -j BERTH-0123-OUTSIDE",
      "-A BERTH-0123-INPUT -i bth0123+ -j BERTH-0123-HOST",
      "-A BERTH-0123-INPUT -i docker0 -j BERTH-0123-HOST",
    ]);
  });

  it("hold the engine itself, by its control group, to the same when a Dockerfile makes it ask", () => {
    expect(lines(4)).toContain(
      "-A BERTH-0123-OUTPUT -m cgroup --path system.slice/docker.service -j BERTH-0123-ENGINE",
    );
    const engine = lines(4).filter((line) => line.startsWith("-A BERTH-0123-ENGINE "));
    expect(engine.at(-1)).toBe("-A BERTH-0123-ENGINE -o lo -j REJECT --reject-with icmp-admin-prohibited");
    expect(engine).toContain(
      "-A BERTH-0123-ENGINE -o bth0123+ -j REJECT --reject-with icmp-admin-prohibited",
    );
    const without = firewallRules({ ...policy, engineGroup: null }, 4).map((rule) => rule.join(" "));
    expect(without.filter((line) => line.includes("-OUTPUT "))).toEqual([]);
  });

  it("keep IPv6 to IPv6, its metadata address and its ways to IPv4 refused", () => {
    const text = lines(6).join("\n");
    for (const network of ["fc00::/7", "fe80::/10", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16"])
      expect(text).toContain(`-d ${network} -j REJECT`);
    expect(text).toContain("-d fd00::53 -p udp --dport 53 -j RETURN");
    expect(text).not.toMatch(/\d+\.\d+\.\d+\.\d+/);
  });

  it("are set in one step that leaves all other chains alone", () => {
    const text = restoreInput(policy, 4);
    expect(text.startsWith("*filter\n:BERTH-0123-FORWARD - [0:0]\n")).toBe(true);
    expect(text.endsWith("\nCOMMIT\n")).toBe(true);
    // That of addresses is in two tables; what counts goes on to.
    expect(text.match(/^:/gm)).toHaveLength(Object.keys(chainNames(agentId)).length - 2);
    expect(text).not.toMatch(/^:BERTH-0123-(?:MANY|VISITORS|QUIC) /m);
    // No table of addresses for IPv6: containers have none of it.
    expect(restoreInput(policy, 6)).not.toContain("*nat");
  });

  it("count the connections of each visitor to the ingress, where not all come from one proxy", () => {
    const visitors = { ports: [80, 443], udpPorts: [443], maxPerAddress: 512 };
    const text = restoreInput({ ...policy, visitors }, 6);
    expect(text).toContain("-A BERTH-0123-INPUT ! -i lo -p tcp --dport 443 -j BERTH-0123-VISITORS\n");
    expect(text).toContain("-A BERTH-0123-INPUT ! -i lo -p udp --dport 443 -j BERTH-0123-QUIC\n");
    expect(text).not.toContain("-p udp --dport 80");
    const [, counted, overUdp] = countingRules({ agentId, visitors, maxConnections: 10_000 }, 6);
    expect(overUdp?.rule?.join(" ")).toBe(
      "-A BERTH-0123-QUIC -p udp -m conntrack --ctstate NEW -m connlimit --connlimit-above 512 --connlimit-mask 64 --connlimit-saddr -j DROP",
    );
    expect(counted?.rule?.join(" ")).toBe(
      "-A BERTH-0123-VISITORS -p tcp -m conntrack --ctstate NEW -m connlimit --connlimit-above 512 --connlimit-mask 64 --connlimit-saddr -j REJECT --reject-with tcp-reset",
    );
    expect(countingRules({ agentId, maxConnections: 10_000 }, 4)[1]).toEqual({
      chain: "BERTH-0123-VISITORS",
      rule: null,
    });
    expect(lines(4).join()).not.toContain("VISITORS");
    const settings = (more: object) => readConfig({ ...least, ...more }).firewall.visitors;
    expect(settings({})).toBeNull();
    expect(settings({ BERTH_TLS_PORT: "443" })).toEqual({ ...visitors, unlimited: [] });
    const unlimited = settings({
      BERTH_TLS_PORT: "443",
      BERTH_TRUSTED_PROXIES: "203.0.113.0/24, 2001:db8::/32",
    });
    const behind = restoreInput({ ...policy, visitors: unlimited }, 6).split("\n");
    const returned = behind.indexOf("-A BERTH-0123-INPUT -s 2001:db8::/32 -p tcp --dport 443 -j RETURN");
    expect(returned).toBeGreaterThan(0);
    expect(returned).toBeLessThan(behind.findIndex((line) => line.endsWith("-j BERTH-0123-VISITORS")));
    expect(behind.join()).not.toContain("203.0.113.0");
    expect(() => settings({ BERTH_TRUSTED_PROXIES: "proxy.example" })).toThrow(
      "proxy.example is not a network",
    );
    expect(settings({ BERTH_TLS_PORT: "443", BERTH_CONNECTIONS_PER_ADDRESS: "0" })).toBeNull();
    expect(settings({ BERTH_CONNECTIONS_PER_ADDRESS: "64" })).toEqual({
      ports: [80],
      udpPorts: [],
      maxPerAddress: 64,
      unlimited: [],
    });
  });

  it("lead from a port of the host to a database for the sources named, and for no container", () => {
    const way = { port: 20_001, allow: ["203.0.113.0/24", "2001:db8::/32"], address: "172.18.0.2" };
    const [filter = "", nat = ""] = restoreInput(
      { ...policy, publicPorts: [{ ...way, containerPort: 5432 }] },
      4,
    ).split("*nat\n");
    expect(filter.split("\n").filter((line) => line.startsWith("-A BERTH-0123-WAYS "))).toEqual([
      "-A BERTH-0123-WAYS -p tcp -m conntrack --ctorigsrc 203.0.113.0/24 --ctorigdstport 20001 --ctreplsrc 172.18.0.2 --ctreplsrcport 5432 -j ACCEPT",
      "-A BERTH-0123-WAYS -p tcp -j REJECT --reject-with tcp-reset",
    ]);
    expect(nat.split("\n").filter((line) => line.startsWith("-A "))).toEqual([
      "-A BERTH-0123-WAYS -i bth+ -j RETURN",
      "-A BERTH-0123-WAYS -i bth0123+ -j RETURN",
      "-A BERTH-0123-WAYS -i docker0 -j RETURN",
      "-A BERTH-0123-WAYS -s 203.0.113.0/24 -p tcp -m addrtype --dst-type LOCAL --dport 20001 -j DNAT --to-destination 172.18.0.2:5432",
    ]);
  });
});

it("the engine's control group counts when the agent is not in it too", () => {
  const docker = "1:name=systemd:/\n0::/system.slice/docker.service\n";
  expect(groupOfItsOwn(docker, "0::/system.slice/berth.service\n")).toBe("system.slice/docker.service");
  expect(groupOfItsOwn(docker, "0::/system.slice/docker.service/x\n")).toBeNull();
  expect(groupOfItsOwn("0::/\n", "0::/system.slice/berth.service\n")).toBeNull();
  expect(groupOfItsOwn("", "")).toBeNull();
});

it("the kernel shows the rules what a bridge passes on between its containers, where it can", async () => {
  const root = temporaryFolder();
  const folder = join(root, "proc/sys/net/bridge");
  const file = join(folder, "bridge-nf-call-iptables");
  await showBridged("iptables", root);
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, "0\n");
  await showBridged("iptables", root);
  expect(readFileSync(file, "utf8")).toBe("1");
});

it("what the kernel leaves to all containers together has no bound, as one site could use all of it", async () => {
  const root = temporaryFolder();
  const names = [
    "fs/aio-max-nr",
    "fs/epoll/max_user_watches",
    "fs/inotify/max_user_instances",
    "fs/inotify/max_user_watches",
    "fs/pipe-user-pages-soft",
    "kernel/pty/max",
    "net/ipv4/neigh/default/gc_thresh2",
    "net/ipv4/neigh/default/gc_thresh3",
    "net/ipv4/tcp_max_orphans",
  ];
  const file = (name: string) => join(root, "proc/sys", name);
  for (const name of names) {
    mkdirSync(dirname(file(name)), { recursive: true });
    writeFileSync(file(name), "128\n");
  }
  // Not every kernel has each of them.
  rmSync(file("fs/aio-max-nr"));
  await liftKernelBounds(root, 8192);
  for (const name of names.slice(1))
    expect(Number(readFileSync(file(name), "utf8")), name).toBe(
      // No container is charged for them.
      name === "kernel/pty/max" ? 16_384 : 2147483647,
    );
  // Where the agent may not, it goes on.
  await liftKernelBounds(join(root, "nowhere"));
});

it("the table of connections grows with the host's memory, and its hash table with it", async () => {
  const root = temporaryFolder();
  const folder = join(root, "proc/sys/net/netfilter");
  const [table, buckets] = [join(folder, "nf_conntrack_max"), join(folder, "nf_conntrack_buckets")];
  const enlarged = async (before: number, memoryMb: number) => {
    for (const file of [table, buckets]) writeFileSync(file, `${before}\n`);
    await enlargeConnectionTable(root, memoryMb);
    return [table, buckets].map((file) => Number(readFileSync(file, "utf8")));
  };
  await enlargeConnectionTable(root);
  mkdirSync(folder, { recursive: true });
  expect(await enlarged(16_384, 1024)).toEqual([262_144, 65_536]);
  expect(await enlarged(65_536, 32_768)).toEqual([1_310_720, 327_680]);
  // An operator's own.
  expect(await enlarged(5_000_000, 4096)).toEqual([5_000_000, 5_000_000]);
});

it("our chain is asked before any rule of others, and moved there once when it is not", () => {
  const chain = "BERTH-0123-INPUT";
  const insert = ["-I", "INPUT", "1", "-j", chain];
  expect(hookCommands("-P INPUT ACCEPT\n", "INPUT", chain)).toEqual([insert]);
  expect(hookCommands(`-P INPUT ACCEPT\n-A INPUT -j ${chain}\n-A INPUT -j ufw\n`, "INPUT", chain)).toEqual(
    [],
  );
  expect(hookCommands(`-A INPUT -j BERTH-9999-INPUT\n-A INPUT -j ${chain}\n`, "INPUT", chain)).toEqual([]);
  expect(hookCommands(`-A INPUT -j ufw\n-A INPUT -j ${chain}\n`, "INPUT", chain)).toEqual([
    insert,
    ["-D", "INPUT", "3"],
  ]);
  expect(hookCommands(`-A FORWARD -j ufw\n-A INPUT -j ufw\n-A INPUT -j ${chain}\n`, "INPUT", chain)).toEqual([
    insert,
    ["-D", "INPUT", "3"],
  ]);
});

it("a bridge's name fits the kernel, is the same for the same network and matches the rules' pattern", () => {
  const name = bridgeName(agentId, "berth-acc_1");
  expect(name).toMatch(/^bth0123[0-9a-f]{8}$/);
  expect(bridgeName(agentId, "berth-acc_1")).toBe(name);
  expect(bridgeName(agentId, "berth-acc_2")).not.toBe(name);
});

it("destinations are addresses or networks, with or without a port", () => {
  expect(parseDestination("10.0.0.5")).toEqual({ family: 4, network: "10.0.0.5", port: null });
  expect(parseDestination("10.0.0.0/24:80")).toEqual({ family: 4, network: "10.0.0.0/24", port: 80 });
  expect(parseDestination("fd00::/64")).toEqual({ family: 6, network: "fd00::/64", port: null });
  expect(parseDestination("[fd00::1]:3128")).toEqual({ family: 6, network: "fd00::1", port: 3128 });
  for (const wrong of [
    "",
    "proxy",
    "10.0.0.5:0",
    "10.0.0.5:99999",
    "10.0.0.0/33",
    "10.0.0.1/8/8",
    "-j ACCEPT",
  ])
    expect([wrong, parseDestination(wrong)]).toEqual([wrong, null]);
});

it("name servers on the host's loopback are Docker's affair", () => {
  expect(
    nameservers("# x\nnameserver 127.0.0.53\nnameserver 10.0.0.2\n", "nameserver 10.0.0.2\nnameserver ::1\n"),
  ).toEqual(["10.0.0.2"]);
});

it("the operator's list is read with the configuration, and a wrong entry is named", () => {
  const read = (list: string) => readConfig({ ...least, BERTH_ALLOWED_PRIVATE_ADDRESSES: list });
  expect(read("10.0.0.5:3128, 10.1.0.0/16,").firewall.allowed).toHaveLength(2);
  expect(() => read("10.0.0.5,proxy")).toThrow("proxy is not an address");
  expect(readConfig({ ...least, BERTH_FIREWALL: "off" }).firewall.mode).toBe("off");
});

describe("while the rules cannot be set", () => {
  const engine = {
    bridges: async () => ({ defaultBridge: "docker0", managed: ["br-old", "bth999900000000"] }),
    facts: async () => ({ usesNftables: false }),
  } as unknown as Engine;
  const open = (mode: FirewallMode, ensure: () => Promise<void>) =>
    openIsolation({ agentId, engine, mode, allowed: [], ensure });
  const fails = () => Promise.reject(new Error("iptables: not installed"));

  it("no tenant's code runs, until they are", async () => {
    let broken = true;
    const isolation = open("on", () => (broken ? fails() : Promise.resolve()));
    await isolation.refresh();
    await expect(isolation.demand()).rejects.toThrow("cannot isolate sites");
    broken = false;
    await isolation.demand();
  });

  it("it runs where the agent may not set any, or was told not to", async () => {
    for (const mode of ["warn", "off"] as const) {
      const isolation = open(mode, fails);
      await isolation.refresh();
      await isolation.demand();
    }
  });

  it("a database is not opened where Docker's own rules would drop what comes to it", async () => {
    let usesNftables = true;
    const isolation = openIsolation({
      agentId,
      engine: { ...engine, facts: () => Promise.resolve({ usesNftables }) } as Engine,
      mode: "on",
      allowed: [],
      ensure: () => Promise.resolve(),
    });
    await expect(isolation.demandPublicAccess(true)).rejects.toThrow(
      /nftables.*firewall-backend to iptables/,
    );
    await isolation.demandPublicAccess(false);
    await isolation.demand();
    usesNftables = false;
    await isolation.demandPublicAccess(true);
  });

  it("a database is not opened, and where the agent keeps no firewall, never", async () => {
    const isolation = open("on", fails);
    await expect(isolation.demandPublicAccess(true)).rejects.toThrow("cannot change public access");
    await expect(isolation.demandPublicAccess(false)).rejects.toThrow("cannot change public access");
    for (const mode of ["warn", "off"] as const) {
      await expect(open(mode, fails).demandPublicAccess(true)).rejects.toThrow("manage its own firewall");
      await open(mode, fails).demandPublicAccess(false);
    }
  });

  it("a change during a setting is followed by another setting", async () => {
    const seen: number[] = [];
    let port = 1;
    const gate = Promise.withResolvers<void>();
    const isolation = openIsolation({
      agentId,
      engine,
      mode: "on",
      allowed: [],
      publicPorts: async () => [{ port, allow: [], address: "172.18.0.2", containerPort: 1 }],
      ensure: async (_agent, { publicPorts = [] }) => {
        seen.push(...publicPorts.map((way) => way.port));
        await gate.promise;
      },
    });
    const first = isolation.refresh();
    await expect.poll(() => seen).toEqual([1]);
    port = 2;
    const second = isolation.demandPublicAccess(true);
    gate.resolve();
    await Promise.all([first, second]);
    expect(seen).toEqual([1, 2]);
  });

  it("networks of an older agent are covered by their own names", async () => {
    const seen: string[][] = [];
    const isolation = openIsolation({
      agentId,
      engine,
      mode: "on",
      allowed: [],
      ensure: async (_agent, { siteBridges }) => void seen.push([...siteBridges]),
    });
    await isolation.demand();
    expect(seen).toEqual([["bth0123+", "br-old"]]);
  });
});
