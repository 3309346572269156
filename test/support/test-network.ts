import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openWay } from "./open-way.ts";

/** A machine of a test's network: a network namespace with one address. */
export type Machine = {
  address: string;
  /** A command that runs as this one, in the machine's network. */
  within(...command: string[]): [program: string, args: string[]];
  /** These ports of the loopback address are the test's own. */
  lead(ports: readonly number[]): Promise<void>;
};

/**
 * Machines behind a router, each in a network namespace: what goes from one to another, and from here to any, is routed. Their
 * addresses are of 198.18.0.0/15, which is reserved for such tests (RFC 2544).
 */
export class TestNetwork {
  private readonly prefix = freeNetwork();
  private readonly name = `berth-test-${this.prefix.replaceAll(".", "-")}`;
  private readonly folder = mkdtempSync(join(tmpdir(), "berth-network-"));
  private readonly namespaces: string[] = [];
  private readonly ends: (() => Promise<void>)[] = [];
  private readonly router: string;

  constructor() {
    this.router = this.newNamespace("router");
    const enable = ["sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"];
    run("nsenter", `--net=${fileOf(this.router)}`, ...enable);
    this.connect(null);
  }

  addMachine(): Machine {
    const namespace = this.newNamespace("machine");
    const address = this.connect(namespace);
    const within = (...command: string[]): [string, string[]] => [
      "nsenter",
      [`--net=${fileOf(namespace)}`, ...command],
    ];
    return {
      address,
      within,
      lead: async (ports) => {
        const ways = ports.map((port) => ({ port, file: join(this.folder, `${namespace}-${port}`) }));
        for (const { port, file } of ways) {
          const way = await openWay(file, port);
          this.ends.push(() => way.close());
        }
        const program = [process.execPath, join(import.meta.dirname, "lead-ports.ts"), JSON.stringify(ways)];
        const child = spawn(...within(...program), { stdio: ["pipe", "pipe", "inherit"] });
        const exited = once(child, "exit");
        this.ends.push(async () => {
          child.kill("SIGKILL");
          await exited;
        });
        await Promise.race([once(child.stdout, "data"), exited]);
        if (child.exitCode !== null) throw new Error(`The ports of ${namespace} lead nowhere`);
      },
    };
  }

  async stop(): Promise<void> {
    for (const end of this.ends.toReversed()) await end();
    for (const namespace of this.namespaces) run("ip", "netns", "delete", namespace);
    rmSync(this.folder, { recursive: true });
  }

  private newNamespace(kind: string): string {
    const namespace = `${this.name}-${kind}-${this.namespaces.length}`;
    run("ip", "netns", "add", namespace);
    this.namespaces.push(namespace);
    run("ip", "-n", namespace, "link", "set", "lo", "up");
    return namespace;
  }

  /** A cable from the router. @param namespace null: to this machine */
  private connect(namespace: string | null): string {
    const [number, first] = [this.namespaces.length, 4 * this.namespaces.length];
    const near = `bt${this.prefix.split(".").slice(1).join("-")}-${number}`;
    const [own, far] = [`${this.prefix}.${first + 2}`, `${this.prefix}.${first + 1}`];
    const at = namespace === null ? [] : ["-n", namespace];
    const inRouter = ["-n", this.router];
    const pair = ["link", "add", near, "type", "veth", "peer", "name", `r${number}`, "netns", this.router];
    run("ip", ...at, ...pair);
    for (const [where, link, address] of [
      [at, near, own],
      [inRouter, `r${number}`, far],
    ] as const) {
      run("ip", ...where, "address", "add", `${address}/30`, "dev", link);
      run("ip", ...where, "link", "set", link, "up");
    }
    run("ip", ...at, "route", "add", `${this.prefix}.0/24`, "via", far);
    return own;
  }
}

const fileOf = (namespace: string): string => `/run/netns/${namespace}`;

const run = (program: string, ...args: string[]): string =>
  execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

/** Three numbers of an address, that no route or namespace of this machine has. */
function freeNetwork(): string {
  const routes = readFileSync("/proc/net/fib_trie", "utf8");
  for (;;) {
    const prefix = `198.${18 + Math.floor(Math.random() * 2)}.${Math.floor(Math.random() * 256)}`;
    const router = fileOf(`berth-test-${prefix.replaceAll(".", "-")}-router-0`);
    if (!routes.includes(`${prefix}.`) && !existsSync(router)) return prefix;
  }
}
