import { createHash, createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import * as z from "zod";
import "../protocol/issue-messages.ts";
import { isNetwork } from "../protocol/api/public-access.ts";
import { isLoopback } from "../protocol/loopback.ts";
import { parseDestination, type Destination } from "./isolation/addresses.ts";
import { firewallMode } from "./isolation/isolation.ts";
import type { Visitors } from "./isolation/rules.ts";

function destinations(text: string, context: z.RefinementCtx): Destination[] {
  const entries = text.split(",").flatMap((entry) => entry.trim() || []);
  return entries.flatMap((entry) => {
    const destination = parseDestination(entry);
    if (destination === null)
      context.addIssue(
        `${entry} is not an address: write 10.0.0.5, 10.0.0.0/24, 10.0.0.5:3128 or [fd00::1]:3128`,
      );
    return destination ?? [];
  });
}

function networks(text: string, context: z.RefinementCtx): string[] {
  const entries = text.split(",").flatMap((entry) => entry.trim() || []);
  for (const entry of entries)
    if (!isNetwork(entry))
      context.addIssue(`${entry} is not a network: write 203.0.113.0/24 or 2001:db8::/32`);
  return entries;
}

const Command = z.tuple([z.string().min(1)], z.string());

function command(text: string | undefined, context: z.RefinementCtx): z.infer<typeof Command> | null {
  if (text === undefined) return null;
  if (!text.startsWith("[")) return [text];
  try {
    return Command.parse(JSON.parse(text));
  } catch {
    context.addIssue('write a path, or ["/path/of/a/program","its first argument"]');
    return z.NEVER;
  }
}

function contents(file: string | undefined, context: z.RefinementCtx): string | undefined {
  try {
    return file === undefined ? undefined : readFileSync(file, "utf8");
  } catch (error) {
    context.addIssue(`the file cannot be read: ${String(error)}`);
    return z.NEVER;
  }
}

/** Whether nobody on the path can read or change the traffic. */
function isKeptPrivate(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  return protocol === "https:" || isLoopback(hostname);
}

/** If TLS ends at a proxy in front of this host, all connections come from that proxy. */
function visitors(env: {
  BERTH_INGRESS_PORT: number;
  BERTH_TLS_PORT?: number | undefined;
  BERTH_CONNECTIONS_PER_ADDRESS?: number | undefined;
  BERTH_TRUSTED_PROXIES: string[];
}): Visitors | null {
  const tlsPort = env.BERTH_TLS_PORT ?? [];
  const maxPerAddress = env.BERTH_CONNECTIONS_PER_ADDRESS ?? (env.BERTH_TLS_PORT === undefined ? 0 : 512);
  if (maxPerAddress === 0) return null;
  return {
    ports: [env.BERTH_INGRESS_PORT].concat(tlsPort),
    udpPorts: new Array<number>().concat(tlsPort),
    maxPerAddress,
    unlimited: env.BERTH_TRUSTED_PROXIES,
  };
}

const port = (fallback: number) => z.coerce.number().int().min(1).max(65535).default(fallback);

const Environment = z
  .object({
    /** The control plane: it receives this host's token and distributes the program that runs here as root. */
    BERTH_URL: z
      .url({ protocol: /^https?$/ })
      .refine(isKeptPrivate, "http is allowed only for a control plane on this machine: write https://"),
    BERTH_HOST_TOKEN: z.string().regex(/^hst_[0-9a-z][0-9A-Za-z]{43}$/, "a host's enrolment token"),
    BERTH_STATE_DIR: z.string().min(1),
    BERTH_DOCKER_SOCKET: z.string().default("/var/run/docker.sock"),
    /** Where visitors are served; empty: at all addresses, of IPv6 too. */
    BERTH_INGRESS_ADDRESS: z.union([z.literal(""), z.ipv4(), z.ipv6()]).default(""),
    BERTH_INGRESS_PORT: port(80),
    /** The HTTPS port; unset or empty: sites are served over HTTP only. */
    BERTH_TLS_PORT: z.preprocess(
      (text) => (text === "" ? undefined : text),
      z.coerce.number().int().min(1).max(65535).optional(),
    ),
    /** The ACME directory, if not Let's Encrypt's, and a PEM file to verify its server with. */
    BERTH_ACME_DIRECTORY: z.url({ protocol: /^https$/ }).optional(),
    BERTH_ACME_CA_FILE: z.string().min(1).optional().transform(contents),
    /** The contact for certificates that are about to expire. */
    BERTH_ACME_EMAIL: z.email().optional(),
    /** Connections to the ingress per client address; 0: unlimited, as behind a proxy. */
    BERTH_CONNECTIONS_PER_ADDRESS: z.coerce.number().int().min(0).optional(),
    /**
     * Addresses and networks of the operator's proxies or CDN, such as `173.245.48.0/20,2400:cb00::/32`: their
     * X-Forwarded-For and X-Forwarded-Proto are believed, and their connections are not limited.
     */
    BERTH_TRUSTED_PROXIES: z.string().default("").transform(networks),
    /** Where other hosts pass on requests for sites that have moved here. */
    BERTH_PEER_PORT: port(5302),
    BERTH_RESPONDER_PORT: port(5300),
    BERTH_STATUS_PORT: port(5301),
    /** Concurrent builds and deployments; by default as many as the machine is good for. The last of several is never a second one of the same account. */
    BERTH_SLOTS: z.coerce.number().int().min(1).max(32).optional(),
    /** Concurrent commands of sites, in addition to the jobs. */
    BERTH_COMMAND_SLOTS: z.coerce.number().int().min(0).max(100).default(4),
    BERTH_DRAIN_SECONDS: z.coerce.number().min(1).max(600).default(2),
    BERTH_DRAIN_MAX_SECONDS: z.coerce.number().min(1).max(3600).default(30),
    BERTH_PROBATION_SECONDS: z.coerce.number().min(0).max(60).default(5),
    /** Seconds between two samples of a site's usage. */
    BERTH_SAMPLE_SECONDS: z.coerce.number().int().min(1).max(3600).default(60),
    /** off: the agent keeps its version, whatever the control plane distributes. */
    BERTH_AUTO_UPDATE: z.enum(["on", "off"]).default("on"),
    BERTH_BUILD_CA_FILE: z.string().min(1).optional(),
    BERTH_INSECURE_GIT_HOSTS: z.string().default(""),
    /** Local images that any site may be based on if no registry has them, such as `team/base:1,team/tools:2`. */
    BERTH_LOCAL_IMAGES: z.string().default(""),
    /**
     * A program, or a JSON array of it and its first arguments, that creates one of Berth's base images if no
     * registry has it. The image's name is the last argument.
     */
    BERTH_IMAGE_PROVIDER: z.string().min(1).optional().transform(command),
    /** Whether the firewall limits what tenants' containers can reach; on by default for root on Linux. */
    BERTH_FIREWALL: z.enum(["on", "off"]).optional(),
    /** Exceptions that tenants may reach: private addresses or networks, each with or without a TCP port. */
    BERTH_ALLOWED_PRIVATE_ADDRESSES: z.string().default("").transform(destinations),
    /** The host's public name or IPv4 address; default: the address it connects from. */
    BERTH_PUBLIC_ADDRESS: z.union([z.ipv4(), z.hostname()]).optional(),
    /**
     * Limits of one build (without one on cores, it uses all that nobody else needs), and the free disk space below
     * which none starts (2 GiB, or 5 % of a large disk).
     */
    BERTH_BUILD_MEMORY_MB: z.coerce.number().int().min(256).default(2048),
    BERTH_BUILD_CPUS: z.coerce.number().min(0.1).optional(),
    BERTH_BUILD_PIDS: z.coerce.number().int().min(64).default(1024),
    BERTH_MIN_FREE_DISK_MB: z.coerce.number().int().min(0).optional(),
    /** Limit on the engine's build cache (10 GiB, or 20 % of a small disk). */
    BERTH_BUILD_CACHE_MB: z.coerce.number().int().min(0).optional(),
  })
  .transform((env) => ({
    controlPlaneUrl: env.BERTH_URL,
    hostToken: secret(env.BERTH_HOST_TOKEN),
    stateDirectory: env.BERTH_STATE_DIR,
    dockerSocket: env.BERTH_DOCKER_SOCKET,
    ingress: {
      address: env.BERTH_INGRESS_ADDRESS,
      port: env.BERTH_INGRESS_PORT,
      responderPort: env.BERTH_RESPONDER_PORT,
      statusPort: env.BERTH_STATUS_PORT,
      trustedProxies: env.BERTH_TRUSTED_PROXIES,
      tls:
        env.BERTH_TLS_PORT === undefined
          ? null
          : {
              port: env.BERTH_TLS_PORT,
              directory: env.BERTH_ACME_DIRECTORY,
              email: env.BERTH_ACME_EMAIL,
              caPem: env.BERTH_ACME_CA_FILE,
              addressKey: createHmac("sha256", env.BERTH_HOST_TOKEN)
                .update("certificates")
                .digest("base64url"),
            },
    },
    peerPort: env.BERTH_PEER_PORT,
    slots:
      env.BERTH_SLOTS ??
      slotsOf(
        { processors: availableParallelism(), memoryMb: totalmem() / 1024 ** 2 },
        env.BERTH_BUILD_MEMORY_MB,
      ),
    commandSlots: env.BERTH_COMMAND_SLOTS,
    sampleSeconds: env.BERTH_SAMPLE_SECONDS,
    autoUpdate: env.BERTH_AUTO_UPDATE === "on",
    firewall: {
      mode: firewallMode(env.BERTH_FIREWALL),
      allowed: env.BERTH_ALLOWED_PRIVATE_ADDRESSES,
      visitors: visitors(env),
    },
    publicAddress: env.BERTH_PUBLIC_ADDRESS,
    builds: {
      limits: {
        memoryMb: env.BERTH_BUILD_MEMORY_MB,
        cpus: env.BERTH_BUILD_CPUS ?? null,
        pids: env.BERTH_BUILD_PIDS,
      },
      minFreeDiskMb: env.BERTH_MIN_FREE_DISK_MB ?? null,
      maxCacheMb: env.BERTH_BUILD_CACHE_MB ?? null,
    },
    imageProvider: env.BERTH_IMAGE_PROVIDER,
    settings: {
      drainSeconds: env.BERTH_DRAIN_SECONDS,
      drainMaxSeconds: env.BERTH_DRAIN_MAX_SECONDS,
      probationSeconds: env.BERTH_PROBATION_SECONDS,
      buildCaFile: env.BERTH_BUILD_CA_FILE ?? null,
      insecureGitHosts: env.BERTH_INSECURE_GIT_HOSTS.split(",").filter(Boolean),
      localImages: env.BERTH_LOCAL_IMAGES.split(",").flatMap((name) => name.trim() || []),
    },
    /** Derived from the token, so that losing the state directory loses neither containers nor images. */
    agentId: createHash("sha256").update(env.BERTH_HOST_TOKEN).digest("hex").slice(0, 16),
    imageRepository: (siteId: string) =>
      `berth-site/${createHmac("sha256", env.BERTH_HOST_TOKEN).update(siteId).digest("hex").slice(0, 32)}`,
  }));
export type AgentConfig = z.infer<typeof Environment>;

/** Printing or serialising it shows nothing; only `reveal` returns the value. */
type Secret = { reveal(): string };
const secret = (value: string): Secret => ({ reveal: () => value });

/**
 * Two more than there are processors, as a deployment waits for much of its time, but no more than half of the memory has room for. Three at least, for
 * accounts to take turns.
 */
export const slotsOf = (machine: { processors: number; memoryMb: number }, buildMb: number): number =>
  Math.max(3, Math.min(machine.processors + 2, Math.floor(machine.memoryMb / 2 / buildMb), 16));

/** Parsed once at startup. @throws with the list of all problems */
export function readConfig(env: NodeJS.ProcessEnv): AgentConfig {
  const result = Environment.safeParse(env);
  if (!result.success) throw new Error(`The agent's configuration:\n${z.prettifyError(result.error)}`);
  return result.data;
}
