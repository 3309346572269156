import { execFileSync, spawn } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmdirSync, statSync } from "node:fs";
import { BlockList, createServer, type AddressInfo, type Server } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { prepareText } from "../../agent/image-build/prepare.ts";
import { deletedBytes } from "../../agent/docker/deleted-files.ts";
import { ownFolderOf } from "../../agent/docker/own-folder.ts";
import { atStartSpeed } from "../../agent/docker/start-speed.ts";
import { networkName, siteContainer } from "../../agent/docker/specs.ts";
import { parseDestination } from "../../agent/isolation/addresses.ts";
import { liftBuildLimits, limitBuilds } from "../../agent/isolation/build-limits.ts";
import { giveOwnGroup, groupOfItsOwn } from "../../agent/isolation/engine-group.ts";
import { ensureFirewall, removeFirewall } from "../../agent/isolation/firewall.ts";
import { diskAt } from "../../agent/isolation/disk.ts";
import type { Ingress } from "../../agent/ingress/ingress.ts";
import { DiskGuard } from "../../agent/running/disk-guard.ts";
import { DiskUse } from "../../agent/running/disk-use.ts";
import { openRecords, type Crash } from "../../agent/running/records.ts";
import { bridgeName, siteBridgePattern } from "../../agent/isolation/rules.ts";
import { engine, execute } from "../support/engine.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const agentId = randomBytes(8).toString("hex");
const docker = async (...args: string[]) => (await execute("docker", args)).stdout;
const accounts = { one: `acc_${agentId}1`, other: `acc_${agentId}2` };
const containers: string[] = [];
const servers: Server[] = [];
const images: string[] = [];
let firewallOpen: { gateway: string; main: string };

type Account = keyof typeof accounts;
type Site = { id: string; address: string };

const listen = 'require("net").createServer((s) => s.on("error", () => {}).end("hello")).listen(3000);';

/** A site as the agent makes it; it listens on port 3000 and says hello. */
async function startSite(account: Account, code = "", limits = {}, siteId?: string): Promise<Site> {
  const accountId = accounts[account];
  const network = networkName(accountId);
  await engine.ensureNetwork(network, bridgeName(agentId, network), { "berth.test": agentId });
  const hello = `${listen}${code}`;
  const run = {
    siteId: siteId ?? `site_${containers.length}${agentId}`,
    accountId,
    hostnames: ["a.localhost"],
    port: 3000,
    startCommand: 'node -e "$CODE"',
    healthCheckPath: null,
    startTimeoutSeconds: 10,
    env: [{ key: "CODE", value: hello, scope: "runtime", secret: false }],
    limits: { memoryMb: 128, cpuMilli: 500, pids: 64, ...limits },
    replicas: 1,
    volumes: [],
  } as unknown as Parameters<typeof siteContainer>[1];
  const id = await engine.createContainer(siteContainer(agentId, run, "dep_1", "node:24-bookworm-slim", ""));
  containers.push(id);
  await engine.startContainer(id);
  const state = await engine.inspectContainer(id);
  return { id, address: state?.addresses[network] ?? "" };
}

const probe = (host: string, port: number) =>
  `const s=require("net").connect({host:${JSON.stringify(host)},port:${port},timeout:3000});` +
  's.on("connect",()=>{console.log("open");s.destroy()}).on("timeout",()=>{console.log("silent");s.destroy()})' +
  '.on("error",(e)=>console.log(e.code))';

/** By our rules, or before them by those of Docker 28 and newer. */
const refusedOrDropped = /^(?:EHOSTUNREACH|silent)$/;

/** What a connection from inside the site's container comes to. The kernel refuses a few times a second, then says nothing. */
async function reach({ id }: Site, host: string, port: number): Promise<string> {
  let last = "silent";
  for (let tries = 0; last === "silent" && tries < 3; tries++)
    last = (await docker("exec", id, "node", "-e", probe(host, port))).trim();
  return last;
}

async function serve(host: string): Promise<number> {
  const server = createServer((socket) => socket.on("error", () => undefined).end("host"));
  servers.push(server.listen(0, host));
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

async function hostReaches({ address }: Site): Promise<string> {
  const code = probe(address, 3000);
  return (await execute(process.execPath, ["-e", code])).stdout.trim();
}

/** Perl, as Node has no such sockets. Arguments: both addresses, the receiver's hardware address, the tags before the packet. */
const frameSender = `
my ($from, $to, $mac, $tags) = @ARGV;
$mac =~ s/://g;
my $udp = pack("n4", 4444, 5555, 8 + length("tags:$tags"), 0) . "tags:$tags";
my @ip = (0x4500, 20 + length($udp), 1, 0, 0x4011, 0, unpack("n2", inet_aton($from)), unpack("n2", inet_aton($to)));
my $sum = 0;
$sum += $_ for @ip;
$sum = ($sum >> 16) + ($sum & 0xffff) while $sum >> 16;
$ip[5] = ~$sum & 0xffff;
my $frame = pack("H12", $mac) . "\\2\\0\\0\\0\\0\\1" . pack("H*", $tags) . pack("n*", 0x0800, @ip) . $udp;
open(my $file, "/sys/class/net/eth0/ifindex");
socket(my $socket, 17, 3, 0) or die $!;
send($socket, $frame, 0, pack("SnlSCCH12n", 17, 0x0800, <$file>, 1, 0, 6, $mac, 0)) or die $!;
`;

const mainAddress = () =>
  Object.entries(networkInterfaces())
    .filter(([name]) => !/^(?:lo|docker|br-|bth|veth)/.test(name))
    .flatMap(([, addresses]) => addresses ?? [])
    .find(({ family }) => family === "IPv4")!.address;

/** Where packages come from on this machine, which tenants' builds need. */
const registry = new URL(execFileSync("npm", ["config", "get", "registry"], { encoding: "utf8" }).trim());
const registryPort = Number(registry.port) || (registry.protocol === "http:" ? 80 : 443);
const fromEnvironment = (process.env["BERTH_ALLOWED_PRIVATE_ADDRESSES"] ?? "")
  .split(",")
  .flatMap((text) => parseDestination(text.trim()) ?? []);

let site: Site, sibling: Site, stranger: Site;
let gateway: string, main: string;
let ports: { gateway: number; main: number; named: number };

const ensure = async (engineGroup?: string) => {
  const { defaultBridge } = await engine.bridges({ "berth.test": agentId });
  await ensureFirewall(
    agentId,
    // Fewer than on a host: the kernel compares each new connection with all there are.
    { siteBridges: [siteBridgePattern(agentId)], buildBridge: defaultBridge, maxConnections: 500 },
    [...fromEnvironment, { family: 4, network: main, port: ports.named }],
    engineGroup,
  );
};

beforeAll(async () => {
  [site, sibling, stranger] = [await startSite("one"), await startSite("one"), await startSite("other")];
  gateway = site.address.replace(/\.\d+$/, ".1");
  main = mainAddress();
  ports = { gateway: await serve(gateway), main: await serve(main), named: await serve(main) };
  for (const each of [site, sibling, stranger])
    await vi.waitUntil(async () => (await hostReaches(each)) === "open", { timeout: 20_000 });
  firewallOpen = {
    gateway: await reach(site, gateway, ports.gateway),
    main: await reach(site, main, ports.main),
  };
  await ensure();
});

afterAll(async () => {
  for (const id of containers) await engine.removeContainer(id);
  for (const account of Object.values(accounts)) await engine.removeNetwork(networkName(account));
  for (const tag of images) await engine.removeImage(tag);
  for (const server of servers) server.close();
  await removeFirewall(agentId);
  for (const tool of ["iptables", "ip6tables"])
    expect(execFileSync(tool, ["-w", "-S"], { encoding: "utf8" })).not.toContain(
      `BERTH-${agentId.slice(0, 4)}`,
    );
});

describe("from inside a site's container", () => {
  it("no address of the host answers, and it is the rules that refuse", async () => {
    expect(firewallOpen).toEqual({ gateway: "open", main: "open" });
    expect(await reach(site, gateway, ports.gateway)).toBe("EHOSTUNREACH");
    expect(await reach(site, main, ports.main)).toBe("EHOSTUNREACH");
  });

  it("neither cloud metadata nor private networks answer", async () => {
    const own = new BlockList();
    const [network, prefix] = (await engine.subnet(networkName(accounts.one))).split("/");
    own.addSubnet(network!, Number(prefix));
    const privates = ["10.0.0.1", "172.30.0.1", "172.31.255.1", "192.168.1.1", "192.168.255.1", "100.64.0.1"];
    // Docker picks networks' addresses in turn from these ranges.
    for (const address of ["169.254.169.254", ...privates.filter((each) => !own.check(each))])
      expect([address, await reach(site, address, 80)]).toEqual([address, "EHOSTUNREACH"]);
  });

  it("another account's site does not answer, one of its own account does", async () => {
    expect(await reach(site, stranger.address, 3000)).toMatch(refusedOrDropped);
    expect(await reach(stranger, site.address, 3000)).toMatch(refusedOrDropped);
    expect(await reach(site, sibling.address, 3000)).toBe("open");
  });

  it("a port published on the host does not answer either", async () => {
    const name = `berth-test-${agentId}`;
    const flags = ["--detach", "--name", name, "--publish", `${main}::3000`];
    containers.push((await docker("run", ...flags, "node:24-bookworm-slim", "node", "-e", listen)).trim());
    const published = Number((await docker("port", name, "3000")).trim().split(":").at(-1));
    await vi.waitUntil(
      async () => (await execute(process.execPath, ["-e", probe(main, published)])).stdout.trim() === "open",
      { timeout: 20_000 },
    );
    expect(await reach(site, main, published)).toBe("EHOSTUNREACH");
  });

  it("names resolve, packages are in reach, and so is the one port the operator named", async () => {
    expect(await reach(site, registry.hostname, registryPort)).toBe("open");
    expect(await reach(site, main, ports.named)).toBe("open");
  });

  it("the engine's socket is not there", async () => {
    const found = await docker(
      "exec",
      site.id,
      "sh",
      "-c",
      "ls /var/run/docker.sock /run/docker.sock 2>&1 || true",
    );
    expect(found.match(/No such file/g)).toHaveLength(2);
  });
});

it("the host, and so the ingress, reaches into every site", async () => {
  for (const each of [site, sibling, stranger]) expect(await hostReaches(each)).toBe("open");
});

it("an engine with a control group of its own asks no private address for a Dockerfile", async () => {
  const root = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].find((folder) =>
    existsSync(join(folder, "cgroup.controllers")),
  );
  const group = `berth-test-${agentId}`;
  const folder = join(root ?? expect.fail("no cgroup2"), group);
  mkdirSync(folder);
  try {
    await ensure(group);
    // Stands for dockerd: the shell moves into the group and becomes the program.
    const script = `echo $$ > ${join(folder, "cgroup.procs")} && exec "$0" -e "$1"`;
    const asks = async (host: string, port: number) =>
      (await execute("sh", ["-c", script, process.execPath, probe(host, port)])).stdout.trim();
    for (const [host, port] of [
      [main, ports.main],
      [gateway, ports.gateway],
      [site.address, 3000],
      ["169.254.169.254", 80],
    ] as const)
      expect([host, await asks(host, port)]).toEqual([host, "EHOSTUNREACH"]);
    expect(await asks(main, ports.named)).toBe("open");
    expect(await asks(registry.hostname, registryPort)).toBe("open");
    expect(await hostReaches(site)).toBe("open");
  } finally {
    await ensure();
    rmdirSync(folder);
  }
});

it("an engine that nothing supervises gets a control group of its own", async () => {
  const stand = spawn("sleep", ["600"]);
  const group = `berth-test-${agentId}-own`;
  expect(await giveOwnGroup(stand.pid!, group)).toBe(true);
  const read = (file: string) => readFileSync(file, "utf8");
  expect(groupOfItsOwn(read(`/proc/${stand.pid}/cgroup`), read("/proc/self/cgroup"))).toBe(group);
  stand.kill();
  await once(stand, "exit");
  for (const root of ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"])
    if (existsSync(join(root, group))) rmdirSync(join(root, group));
});

it("IPv6 is refused as well, should the engine ever give any", () => {
  const listing = execFileSync("ip6tables", ["-w", "-S"], { encoding: "utf8" });
  const chain = `BERTH-${agentId.slice(0, 4)}`;
  expect(listing).toContain(`-A INPUT -j ${chain}-INPUT`);
  expect(listing).toContain(`-A ${chain}-HOST -j REJECT --reject-with icmp6-adm-prohibited`);
  expect(listing).toMatch(new RegExp(`^-A (?:FORWARD|DOCKER-USER) -j ${chain}-FORWARD$`, "m"));
});

it("setting the rules again changes nothing, and puts back what was lost", async () => {
  const listing = () => execFileSync("iptables", ["-w", "-S"], { encoding: "utf8" });
  const ours = () =>
    listing()
      .split("\n")
      .filter((line) => line.includes(`BERTH-${agentId.slice(0, 4)}`));
  const before = ours();
  await ensure();
  expect(ours()).toEqual(before);
  execFileSync("iptables", ["-w", "-D", "INPUT", "-j", `BERTH-${agentId.slice(0, 4)}-INPUT`]);
  expect(await reach(site, gateway, ports.gateway)).toBe("open");
  await ensure();
  expect(await reach(site, gateway, ports.gateway)).toBe("EHOSTUNREACH");
});

/** Builds as the agent does; lines of RUN steps, in order. Never cached. */
async function build(
  steps: string[],
  cacheNamespace = agentId,
  secret: string | null = null,
  nonce = randomUUID(),
): Promise<string[]> {
  const text = ["FROM node:24-bookworm-slim", `RUN echo ${nonce}`, ...steps, ""].join("\n");
  const input = { siteId: "site_test", rootDir: null, dockerfilePath: null, buildCommand: null };
  const prepared = await prepareText(text, { ...input, startCommand: null, env: [] }, null);
  const tag = `berth-test/isolation:${randomUUID()}`;
  const lines: string[] = [];
  await engine.build({
    ...prepared,
    context: null,
    tag,
    labels: { "berth.test": "true" },
    cacheNamespace,
    secrets: new Map(secret === null ? [] : [["env_TOKEN", Buffer.from(secret)]]),
    signal: new AbortController().signal,
    onLine: (line, stream) => void (stream === "stdout" && lines.push(line)),
  });
  images.push(tag);
  return lines.slice(1);
}

describe("a build step", () => {
  it("reaches packages, and neither the host, nor metadata, nor a site", async () => {
    const targets: [string, number][] = [
      [gateway, ports.gateway],
      [main, ports.main],
      ["169.254.169.254", 80],
      [site.address, 3000],
      [registry.hostname, registryPort],
    ];
    const steps = targets.map(([host, port]) => `RUN node -e '${probe(host, port)}'`);
    const no = "EHOSTUNREACH";
    expect(await build(steps)).toEqual([no, no, no, expect.stringMatching(refusedOrDropped), "open"]);
  });

  it("gets neither the host's network nor its privileges", async () => {
    await expect(build(["RUN --network=host true"])).rejects.toThrow(/not allowed|unknown flag/i);
    await expect(build(["RUN --security=insecure true"])).rejects.toThrow(/not allowed|unknown flag/i);
  });

  it("is sent nothing by another one, whatever it writes into a frame", async () => {
    // On the same bridge and with the same capabilities as build steps.
    const start = async (...command: string[]) => {
      const id = (await docker("run", "--detach", "node:24-bookworm-slim", ...command)).trim();
      containers.push(id);
      return id;
    };
    const receiver = await start(
      "node",
      "-e",
      'require("dgram").createSocket("udp4").on("message", (m) => console.log(m.toString())).bind(5555)',
    );
    const sender = await start("sleep", "600");
    const format = "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{.MacAddress}}{{end}}";
    const [[from = ""] = [], [to = "", mac = ""] = []] = await Promise.all(
      [sender, receiver].map(async (id) =>
        (await docker("inspect", "--format", format, id)).trim().split(" "),
      ),
    );
    for (const tags of ["", "81000000", "88a80000", "8100000081000000", "88a8000081000000"])
      await docker("exec", sender, "perl", "-MSocket", "-e", frameSender, from, to, mac, tags);
    // What the host sends arrives, after all of those.
    const socket = createSocket("udp4");
    try {
      await vi.waitUntil(
        async () => {
          socket.send("by the host", 5555, to);
          return (await docker("logs", receiver)).includes("by the host");
        },
        { timeout: 20_000 },
      );
    } finally {
      socket.close();
    }
    expect(new Set((await docker("logs", receiver)).trim().split("\n"))).toEqual(new Set(["by the host"]));
  });

  it("that uses too much memory or too many processes is ended, and nothing else is", async () => {
    const { cgroupDriver } = await engine.facts();
    expect(cgroupDriver).toBe("cgroupfs");
    await limitBuilds(cgroupDriver, { memoryMb: 2048, cpus: 2, pids: 600 }, 1);
    try {
      const hog = "const all = []; for (;;) all.push(Buffer.alloc(8388608, 1))";
      await expect(build([`RUN node -e '${hog}'`])).rejects.toThrow(/exit code: 137|cannot allocate memory/);
      const [forks] = await build([
        "RUN (while true; do sleep 60 & done) 2>&1 | head -1; ls -d /proc/[0-9]* | wc -l",
      ]);
      expect(forks).toMatch(/fork/i);
      expect(await hostReaches(site)).toBe("open");
    } finally {
      await liftBuildLimits();
    }
  });

  it("finds nothing in its cache that another site's build put there", async () => {
    const step = "RUN --mount=type=cache,target=/cache cat /cache/kept || true; echo kept > /cache/kept";
    const [own, other] = [randomUUID(), randomUUID()];
    expect(await build([step], own)).toEqual([]);
    expect(await build([step], other)).toEqual([]);
    expect(await build([step], own)).toEqual(["kept"]);
  });

  it("is run anew though another site's build ran the same, as it may make a key", async () => {
    const nonce = randomUUID();
    const make = (site: string) => build(["RUN head -c 16 /dev/urandom | base64"], site, null, nonce);
    const [own, other] = [randomUUID(), randomUUID()];
    const made = await make(own);
    expect(await make(own)).toEqual([]);
    const madeForOther = await make(other);
    expect(madeForOther).toHaveLength(1);
    expect(madeForOther).not.toEqual(made);
  });

  it("is run anew though another site's build ran the same with a secret of its own", async () => {
    const nonce = randomUUID();
    const steps = ["RUN --mount=type=secret,id=env_TOKEN cat /run/secrets/env_TOKEN > /kept"];
    await build(steps, "one", "hunter2", nonce);
    await expect(build(steps, "other", null, nonce)).rejects.toThrow(/exit code: 1/);
  });
});

it("a site's container passes section 5 of the CIS Docker Benchmark", async () => {
  const [found] = JSON.parse(await docker("inspect", site.id)) as [
    { HostConfig: Record<string, unknown>; Mounts: unknown[]; AppArmorProfile: string },
  ];
  expect(found.Mounts).toEqual([]);
  expect(found.HostConfig).toMatchObject({
    Privileged: false,
    Binds: null,
    CapDrop: ["ALL"],
    SecurityOpt: ["no-new-privileges"],
    PidMode: "",
    UTSMode: "",
    UsernsMode: "",
    IpcMode: "private",
    CgroupnsMode: "private",
    NetworkMode: networkName(accounts.one),
    PublishAllPorts: false,
    // None; engines say it in two ways.
    PortBindings: expect.toSatisfy((ports) => Object.keys(ports ?? {}).length === 0),
    Devices: null,
    PidsLimit: 64,
    Memory: 128 * 1024 * 1024,
    MemorySwap: 128 * 1024 * 1024,
    NanoCpus: 500_000_000,
    CpuShares: 512,
    OomKillDisable: false,
    OomScoreAdj: 500,
    ShmSize: 64 * 1024 * 1024,
    LogConfig: { Type: "json-file", Config: { "max-size": "10m", "max-file": "3" } },
  });
  const status = await docker("exec", site.id, "cat", "/proc/1/status");
  expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
  // 2: a filter, which is Docker's default one.
  expect(status).toMatch(/^Seccomp:\s+2$/m);
  // CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID, SETUID, NET_BIND_SERVICE.
  expect(status).toMatch(/^CapBnd:\s+00000000000004eb$/m);
  expect((await docker("exec", site.id, "sh", "-c", "ulimit -n; ulimit -c")).split("\n")).toEqual([
    "16384",
    "0",
    "",
  ]);
});

it("how much an image declares of its containers is known before there are any", async () => {
  const name = `berth-test:${agentId}-declares`;
  images.push(name);
  const changes = ["EXPOSE 1-2000", "VOLUME /one /two", `LABEL long=${"x".repeat(5000)}`];
  const args = changes.flatMap((change) => ["--change", change]);
  // An empty tar.
  execFileSync("docker", ["import", ...args, "-", name], { input: Buffer.alloc(1024) });
  const { bytes, ...counts } = await engine.imageDeclares(name);
  expect(counts).toEqual({ ports: 2000, volumes: 2 });
  expect(bytes).toBeGreaterThan(5000);
});

it("a site may use two processors while it starts, and its pack's half of one when it serves", async () => {
  const { id } = await startSite("one");
  const container = (await engine.inspectContainer(id))!;
  // Of whichever version of control groups this kernel has.
  const files = "cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null || true";
  const quota = async () => (await docker("exec", id, "sh", "-c", files)).trim().split(" ")[0];
  expect(await quota()).toBe("50000");
  expect(await atStartSpeed(container, quota)).toBe("200000");
  await expect.poll(quota).toBe("50000");
});

it("a fork bomb ends at its site's limit, and others go on", async () => {
  const bomb = await startSite("one");
  await vi.waitUntil(async () => (await hostReaches(bomb)) === "open", { timeout: 20_000 });
  const forked = await execute("docker", [
    "exec",
    bomb.id,
    "sh",
    "-c",
    "while true; do sleep 600 & done",
  ]).catch((error: Error & { stderr: string }) => error);
  expect(forked.stderr).toMatch(/fork/i);
  const processes = (await docker("top", bomb.id, "-eLo", "pid")).trim().split("\n").length - 1;
  expect(processes).toBeGreaterThan(40);
  expect(processes).toBeLessThanOrEqual(64);
  expect(await hostReaches(sibling)).toBe("open");
  await engine.removeContainer(bomb.id);
});

it("a site that opens connections without end is refused more of them, and others go on", async () => {
  const flood = await startSite("one");
  await vi.waitUntil(async () => (await hostReaches(flood)) === "open", { timeout: 20_000 });
  // Each port is a connection to the host's table of them, though nobody answers.
  const spray = (address: string) =>
    `const s=require("dgram").createSocket("udp4");s.bind(()=>{let port=20000;const more=()=>{for(let n=0;n<100;n++)s.send("x",port++,"${address}");
    if(port<21000)setTimeout(more,1);else setTimeout(()=>s.close(),300)};more()})`;
  expect(await reach(flood, sibling.address, 3000)).toBe("open");
  const isRefused = async () => refusedOrDropped.test(await reach(flood, sibling.address, 3000));
  // The kernel forgets them within 30 seconds, and sooner where the host's table is full of others': between two steps of a slow machine.
  await vi.waitUntil(
    async () => {
      await docker("exec", flood.id, "node", "-e", spray(sibling.address));
      if (!(await isRefused())) return false;
      // As each minute: it does not count from nothing.
      await ensure();
      return isRefused();
    },
    { timeout: 90_000 },
  );
  expect(await hostReaches(flood)).toBe("open");
  expect(await reach(sibling, site.address, 3000)).toBe("open");
  await engine.removeContainer(flood.id);
});

it("a memory hog is killed alone", async () => {
  const code = "setTimeout(() => { const all = []; for (;;) all.push(Buffer.alloc(8388608, 1)); }, 500)";
  const before = await engine.inspectContainer(sibling.id);
  const hog = await startSite("one", code, { memoryMb: 64 });
  const restarts = async () =>
    Number(await docker("inspect", "--format", "{{.RestartCount}}", hog.id)) > 0 ||
    (await engine.inspectContainer(hog.id))?.oomKilled;
  await vi.waitUntil(restarts, { timeout: 30_000 });
  expect((await engine.inspectContainer(sibling.id))?.pid).toBe(before?.pid);
  expect(await hostReaches(sibling)).toBe("open");
  await engine.removeContainer(hog.id);
});

it("what a site writes to files that the engine made for it counts as its own", async () => {
  const fill =
    'for (const name of ["hosts", "hostname", "resolv.conf"]) require("fs").writeFileSync("/etc/" + name, Buffer.alloc(2e7, 1));';
  const hog = await startSite("one", fill);
  await vi.waitUntil(async () => (await hostReaches(hog)) === "open", { timeout: 20_000 });
  const folder = temporaryFolder();
  const records = openRecords(join(folder, "running.db"));
  const ingress = { current: () => [{ containerId: hog.id }] } as unknown as Ingress;
  const diskUse = new DiskUse({ engine, ingress, records, databases: () => Promise.resolve(new Map()) });
  try {
    await vi.waitUntil(async () => ((await diskUse.of(`site_${agentId}`, 0)).totalMb ?? 0) > 55, {
      timeout: 20_000,
    });
    const [holding] = await diskUse.holdings(`site_${agentId}`, [hog.id], [], { bytesPerFile: 0 });
    expect(holding?.heldMb).toBeGreaterThan(55);
  } finally {
    records.close();
    await engine.removeContainer(hog.id);
  }
});

it("what a site holds open without a name counts as its own, but not what is in memory", async () => {
  const hold =
    'const fs = require("fs"); for (const folder of ["/tmp", "/dev/shm"]) { const open = fs.openSync(folder + "/x", "w"); fs.unlinkSync(folder + "/x"); fs.writeSync(open, Buffer.alloc(3e7, 1)); }';
  const hog = await startSite("one", hold);
  await vi.waitUntil(async () => (await hostReaches(hog)) === "open", { timeout: 20_000 });
  const held = async () => (await deletedBytes((await engine.inspectContainer(hog.id))!)) / 1e6;
  await vi.waitUntil(async () => (await held()) > 29, { timeout: 20_000 });
  expect(await held()).toBeLessThan(31);
  expect(await deletedBytes((await engine.inspectContainer(sibling.id))!)).toBe(0);
  await engine.removeContainer(hog.id);
});

it("a disk hog is stopped alone once the disk is short, with the reason, and what it wrote is gone", async () => {
  const limits = { diskGb: 0.1 };
  const [hogId, withinId] = [`site_hog${agentId}`, `site_within${agentId}`];
  // Without end, and never more than 512 MB.
  const fill =
    'const fs=require("fs"),f=fs.openSync("/tmp/full","w"),b=Buffer.alloc(1048576,1);let n=0;' +
    "setInterval(()=>fs.writeSync(f,b,0,b.length,(n++%512)*b.length),5);";
  const within = await startSite(
    "other",
    'require("fs").writeFileSync("/tmp/some",Buffer.alloc(8388608,1))',
    limits,
    withinId,
  );
  const hog = await startSite("other", fill, limits, hogId);
  const folder = temporaryFolder();
  const records = openRecords(join(folder, "running.db"));
  const serving = new Map([
    [hogId, hog],
    [withinId, within],
  ]);
  const ingress = {
    current: (siteId: string) => {
      const one = serving.get(siteId);
      return one ? [{ containerId: one.id }] : "parked";
    },
    fallback: () => null,
    withdraw: (siteId: string) => Promise.resolve(void serving.delete(siteId)),
  } as unknown as Ingress;
  const { rootDirectory } = await engine.facts();
  const diskUse = new DiskUse({ engine, ingress, records, databases: () => Promise.resolve(new Map()) });
  const crashes: Crash[] = [];
  const guard = new DiskGuard({
    engine,
    ingress,
    records,
    agentId,
    diskUse,
    databases: () => Promise.resolve(new Map()),
    // As full as the agent would find a small disk.
    disk: async () => ({ ...(await diskAt(rootDirectory))!, freeBytes: 1e9 - written() }),
    minFreeMb: 1e9 / 1024 ** 2,
    onCrash: (crash) => crashes.push(crash),
  });
  const ownFolder = (await ownFolderOf((await engine.inspectContainer(hog.id))!))!;
  const written = () => statSync(join(ownFolder, "tmp/full"), { throwIfNoEntry: false })?.size ?? 0;
  try {
    await vi.waitUntil(() => written() > 120 * 1024 ** 2, { timeout: 60_000 });
    await guard.look();
    expect(crashes).toMatchObject([
      { siteId: hogId, error: expect.stringMatching(/wrote more than its pack's disk and was stopped/) },
    ]);
    expect(records.events(hogId).map(({ kind }) => kind)).toEqual(["disk_full"]);
    expect(await engine.inspectContainer(hog.id)).toBeNull();
    expect(existsSync(ownFolder)).toBe(false);
    expect((await engine.inspectContainer(within.id))?.running).toBe(true);
    for (const each of [within, sibling]) expect(await hostReaches(each)).toBe("open");
  } finally {
    records.close();
  }
});
