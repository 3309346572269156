import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import type { Host } from "../../protocol/api/hosts.ts";
import { accessLogVolume } from "../../agent/ingress/access-log.ts";
import { ingressVolume } from "../../agent/ingress/container.ts";
import { removeFirewall } from "../../agent/isolation/firewall.ts";
import { removeIngress, removeSites } from "../../scripts/lib/engine-objects.ts";
import { freePort } from "../../scripts/lib/state.ts";
import type { PrivateEngine } from "../support/private-engine.ts";
import type { Machine } from "../support/test-network.ts";
import { api, gitHost, local, stateDirectory, until } from "./service.ts";

export type SecondHost = {
  id: string;
  ingressPort: number;
  /** The agent's own file. */
  agentFile: string;
  /** Ends the agent and starts another one of it, which updates itself; resolves with the code it then exits with. */
  updateAgent(): Promise<number | null>;
  startAgent(): void;
  stop(): Promise<void>;
};

export const hostRecord = async (id: string): Promise<Host | undefined> =>
  (await api<{ data: Host[] }>("GET", "/hosts")).body.data.find((host) => host.id === id);

/** Another agent on the same engine, with an ingress of its own. @param settings further variables of the agent */
export async function startSecondHost(settings: Record<string, string> = {}): Promise<SecondHost> {
  const name = `second-${Date.now().toString(36)}`;
  const { body } = await api<{ id: string; token: string }>("POST", "/hosts", { name });
  const folder = join(stateDirectory, "second-host");
  const ingressPort = Number(settings["BERTH_INGRESS_PORT"] ?? (await freePort()));
  const programs = await startHost(local.siteUrl, body.token, folder, {
    BERTH_INGRESS_ADDRESS: "127.0.0.1",
    BERTH_INGRESS_PORT: String(ingressPort),
    ...settings,
  });
  await until(
    () => hostRecord(body.id),
    (host) => host?.connected === true,
    60_000,
  );
  return { id: body.id, ingressPort, ...programs };
}

/**
 * The programs of a host: its agent and its responder.
 * @param env says at least where its ingress serves
 * @param machine whose network and engine it has; null: this one's
 */
export async function startHost(
  siteUrl: string,
  token: string,
  folder: string,
  env: Record<string, string>,
  machine: (Machine & { engine: PrivateEngine }) | null = null,
) {
  mkdirSync(folder, { recursive: true });
  const [responderPort, statusPort, peerPort] = [await freePort(), await freePort(), await freePort()];
  const bundle = (name: string) => join(stateDirectory, "build", "public", "install", `${name}.mjs`);
  const agentFile = join(folder, "agent.mjs");
  copyFileSync(bundle("agent"), agentFile);
  const start = (name: string, file: string, args: string[], autoUpdate = "off"): ChildProcess => {
    const command = [process.execPath, file, ...args];
    const [program = "", ...rest] = machine ? machine.within(...command).flat() : command;
    return spawn(program, rest, {
      stdio: ["pipe", openSync(join(folder, `${name}.log`), "a"), openSync(join(folder, `${name}.log`), "a")],
      env: {
        ...process.env,
        BERTH_EXIT_WITH_PARENT: "1",
        BERTH_URL: siteUrl,
        BERTH_HOST_TOKEN: token,
        BERTH_STATE_DIR: folder,
        BERTH_RESPONDER_PORT: String(responderPort),
        BERTH_STATUS_PORT: String(statusPort),
        BERTH_PEER_PORT: String(peerPort),
        BERTH_INSECURE_GIT_HOSTS: gitHost,
        BERTH_AUTO_UPDATE: autoUpdate,
        ...(machine && { BERTH_DOCKER_SOCKET: machine.engine.socketPath }),
        ...env,
      },
    });
  };
  const responder = start("responder", bundle("responder"), [
    join(folder, "ingress", "routes.json"),
    String(responderPort),
    String(statusPort),
  ]);
  let agent = start("agent", agentFile, []);
  const exitOf = (child: ChildProcess) =>
    new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
  const agentId = createHash("sha256").update(token).digest("hex").slice(0, 16);
  return {
    agentId,
    agentFile,
    async updateAgent() {
      const ended = exitOf(agent);
      agent.kill("SIGTERM");
      await ended;
      agent = start("agent", agentFile, [], "on");
      return exitOf(agent);
    },
    startAgent() {
      agent = start("agent", agentFile, [], "on");
    },
    async stop() {
      for (const child of [agent, responder]) {
        const ended = exitOf(child);
        if (child.kill("SIGTERM")) await ended;
      }
      // What is on an engine of its own goes with that.
      if (machine) return;
      await removeSites(token);
      await removeIngress(token);
      docker("volume", "rm", "--force", accessLogVolume(agentId), ingressVolume(agentId));
      await removeFirewall(agentId);
    },
  };
}

export const docker = (...args: string[]): string => execFileSync("docker", args, { encoding: "utf8" });
