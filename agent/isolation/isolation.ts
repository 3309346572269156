import type { Engine } from "../docker/engine.ts";
import { JobError } from "../job.ts";
import { log } from "../log.ts";
import type { Destination } from "./addresses.ts";
import { ensureFirewall } from "./firewall.ts";
import { siteBridgePattern, type Visitors, type PublicPort } from "./rules.ts";
import { label } from "../docker/labels.ts";

export type FirewallMode = "on" | "warn" | "off";

/** Maintains the firewall that limits what tenants' containers can reach. */
export type Isolation = {
  /** Sets the rules again; a failure is logged. */
  refresh(): Promise<void>;
  /** @throws JobError if tenants' code must not run here because the rules could not be set */
  demand(): Promise<void>;
  /** Brings the rules for public access to databases up to date. @throws JobError if that fails */
  demandPublicAccess(any: boolean): Promise<void>;
};

const recheckMs = 60_000;
const defaultBridge = "docker0";

/** On for root on Linux; elsewhere the agent tries and warns. */
export function firewallMode(setting: "on" | "off" | undefined): FirewallMode {
  return setting ?? (process.platform === "linux" && process.getuid?.() === 0 ? "on" : "warn");
}

export function openIsolation(options: {
  agentId: string;
  engine: Engine;
  mode: FirewallMode;
  allowed: readonly Destination[];
  visitors?: Visitors | null;
  /** The ports that should be public now. */
  publicPorts?: () => Promise<PublicPort[]>;
  ensure?: typeof ensureFirewall;
}): Isolation & { watch(signal: AbortSignal): void } {
  const { agentId, engine, mode, allowed, visitors, ensure = ensureFirewall } = options;
  let failure: string | null = "not set yet";
  let running: Promise<void> | undefined;
  // Until the engine is up, assumes its default bridge, so that its containers start with the rules in place.
  let known = { defaultBridge, managed: [] as string[] };
  let publicPorts: PublicPort[] = [];
  let next: Promise<void> | undefined;

  async function set(): Promise<void> {
    try {
      known = await engine.bridges({ [label.managed]: "true" }).catch(() => known);
      // Networks whose bridges do not have our names.
      const others = known.managed.filter((name) => !name.startsWith("bth"));
      const siteBridges = [siteBridgePattern(agentId), ...others];
      publicPorts = (await options.publicPorts?.().catch(() => publicPorts)) ?? [];
      await ensure(
        agentId,
        { siteBridges, buildBridge: known.defaultBridge, publicPorts, visitors },
        allowed,
      );
      if (failure !== null) log("info", "The firewall isolates tenants");
      failure = null;
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (message !== failure) log(mode === "on" ? "error" : "warn", unset[mode], { error });
      failure = message;
    }
  }
  const refresh = async () => {
    if (mode === "off") return;
    // Not the run in progress, which may have read outdated state.
    next ??= (running ?? Promise.resolve()).then(() => {
      next = undefined;
      return (running = set().finally(() => (running = undefined)));
    });
    await next;
  };
  return {
    refresh,
    async demand() {
      if (mode === "on" && failure !== null) await refresh();
      if (mode === "on" && failure !== null)
        throw new JobError(
          "This host cannot isolate sites at the moment, so it starts none: ask the operator to fix its firewall.",
        );
    },
    async demandPublicAccess(any) {
      if (mode !== "on" && any)
        throw new JobError(
          "This host does not manage its own firewall, so its databases cannot be public: ask its operator to run the agent as root, without BERTH_FIREWALL=off.",
        );
      if (mode !== "on") return;
      if (any && (await engine.facts()).usesNftables)
        throw new JobError(
          "Docker on this host keeps its rules with nftables, which drop public connections to databases: ask its operator to set Docker's firewall-backend to iptables.",
        );
      await refresh();
      if (failure !== null)
        throw new JobError(
          "This host cannot change public access to its databases at the moment: ask the operator to fix its firewall.",
        );
    },
    watch(signal) {
      if (mode === "off") {
        log("warn", "BERTH_FIREWALL is off: tenants can reach this host, its network and each other");
        return;
      }
      const timer = setInterval(() => void refresh(), recheckMs).unref();
      signal.addEventListener("abort", () => clearInterval(timer), { once: true });
    },
  };
}

/** Sets the rules at boot, when no engine can list its bridges yet. @throws with iptables' message */
export async function raiseFirewall(options: {
  agentId: string;
  mode: FirewallMode;
  allowed: readonly Destination[];
  visitors?: Visitors | null;
}): Promise<void> {
  const { agentId, mode, allowed, visitors } = options;
  if (mode === "off") return;
  const bridges = { siteBridges: [siteBridgePattern(agentId)], buildBridge: defaultBridge, visitors };
  await ensureFirewall(agentId, bridges, allowed, null);
}

const unset = {
  on: "The firewall could not be set, so no jobs are accepted: install iptables and run the agent as root, or set BERTH_FIREWALL=off",
  warn: "The firewall could not be set: tenants can reach this host, its network and each other. Run the agent as root, with iptables",
  off: "",
};
