import { spawn } from "node:child_process";
import { existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { giveOwnGroup } from "../../agent/isolation/engine-group.ts";
import { run, step, succeeds } from "./command.ts";

type DockerEngine = {
  socketPath: string;
  /** Ends the engine if we started it and it runs no other containers. */
  stop(): Promise<void>;
};

export const dockerSocket = (): string => {
  const host = process.env["DOCKER_HOST"];
  if (host === undefined || host === "") return "/var/run/docker.sock";
  if (!host.startsWith("unix://"))
    throw new Error(`DOCKER_HOST is ${host}: Berth needs an engine on this machine (unix://…)`);
  return host.slice("unix://".length);
};

const answers = (socketPath: string): Promise<boolean> =>
  new Promise((resolve) => {
    const request = http.get({ socketPath, path: "/_ping", timeout: 2000 }, (response) =>
      resolve(response.resume().statusCode === 200),
    );
    request.on("timeout", () => request.destroy()).on("error", () => resolve(false));
  });

const isDebian = (): boolean => existsSync("/etc/debian_version");
const isRoot = (): boolean => process.getuid?.() === 0;

/** Installs those of these programs that are missing, by the Debian package that has each. */
export async function installMissing(packageOf: Readonly<Record<string, string>>): Promise<void> {
  const missing = Object.entries(packageOf).filter(([program]) => !existsSync(program));
  if (missing.length > 0) await installPackages(missing.map(([, name]) => name));
}

/** Installs the Debian packages that are missing. */
export async function installPackages(packages: string[]): Promise<void> {
  if (!isDebian() || !isRoot())
    throw new Error(
      `These programs are missing: ${packages.join(", ")}. Install them, or run this as root on Debian or Ubuntu.`,
    );
  await step(`Installing ${packages.join(", ")} (apt-get)`, async () => {
    await run("apt-get", ["update"]);
    await run("apt-get", ["install", "--yes", "--no-install-recommends", ...packages], {
      env: { DEBIAN_FRONTEND: "noninteractive" },
      // An interruption would leave packages half installed.
      toTheEnd: true,
    });
  });
}

/** Since Debian 13 the client has a package of its own, which docker.io only recommends. */
async function installClient(install = installPackages): Promise<void> {
  if (!(await succeeds("docker", ["--version"]))) await install(["docker-cli"]);
}

/** Docker where it is missing: the engine, and the client of it. */
export async function installDocker(install = installPackages): Promise<void> {
  if (!(await succeeds("dockerd", ["--version"]))) await install(["docker.io", "iptables"]);
  await installClient(install);
}

/** Ensures that a Docker engine is running; installs and starts one if possible. */
export async function ensureDockerEngine(stateDirectory: string): Promise<DockerEngine> {
  const socketPath = dockerSocket();
  const left: DockerEngine = { socketPath, stop: async () => undefined };
  if (await answers(socketPath)) {
    await installClient();
    const file = pidFile(stateDirectory);
    const id = existsSync(file) ? Number(readFileSync(file, "utf8")) : 0;
    return isEngine(id) ? owned(socketPath, stateDirectory, id) : left;
  }
  if (process.env["DOCKER_HOST"])
    throw new Error(
      `No Docker engine answers at ${socketPath} (DOCKER_HOST): start it, or unset DOCKER_HOST.`,
    );
  if (!isRoot())
    throw new Error(
      "No Docker engine answers. Start Docker (and let this user use it), or run this as root on Debian or Ubuntu.",
    );
  await installDocker();
  if (await succeeds("systemctl", ["is-system-running", "--quiet"])) {
    await step("Starting Docker (systemd)", () =>
      run("systemctl", ["start", "docker"]).then(() => untilAnswers(socketPath, undefined)),
    );
    return left;
  }
  return step("Starting the Docker engine", () => startEngine(socketPath, stateDirectory));
}

async function startEngine(socketPath: string, stateDirectory: string): Promise<DockerEngine> {
  // A killed engine leaves these, and the next one would wait for processes that are gone.
  for (const stale of ["/var/run/docker.pid", "/var/run/docker/containerd/containerd.pid"])
    removeStalePid(stale);
  const logs = join(stateDirectory, "logs");
  mkdirSync(logs, { recursive: true });
  const log = openSync(join(logs, "dockerd.log"), "a");
  const engine = spawn("dockerd", [], { detached: true, stdio: ["ignore", log, log] });
  let ended = false;
  engine.once("error", () => (ended = true)).once("exit", () => (ended = true));
  if (engine.pid !== undefined) writeFileSync(pidFile(stateDirectory), String(engine.pid));
  await untilAnswers(socketPath, () => ended);
  // Lets the agent's firewall distinguish the engine's traffic from that of the host's other programs.
  if (engine.pid !== undefined) await giveOwnGroup(engine.pid, "berth-engine");
  engine.unref();
  return owned(socketPath, stateDirectory, engine.pid ?? 0);
}

/** The engine that we started, in this run or in one that was killed. */
const pidFile = (stateDirectory: string) => join(stateDirectory, "dockerd.pid");

function owned(socketPath: string, stateDirectory: string, id: number): DockerEngine {
  return {
    socketPath,
    async stop() {
      if (!isEngine(id) || (await run("docker", ["ps", "--quiet"])).trim() !== "") return;
      process.kill(id, "SIGTERM");
      for (const end = Date.now() + 20_000; isEngine(id) && Date.now() < end;) await delay(100);
      rmSync(pidFile(stateDirectory), { force: true });
    },
  };
}

async function untilAnswers(socketPath: string, failed: (() => boolean) | undefined): Promise<void> {
  for (const end = Date.now() + 60_000; ;) {
    if (await answers(socketPath)) return;
    if (failed?.() || Date.now() > end)
      throw new Error("The Docker engine did not start: see logs/dockerd.log in the state directory.");
    await delay(200);
  }
}

function removeStalePid(file: string): void {
  if (existsSync(file) && !isEngine(Number(readFileSync(file, "utf8")))) rmSync(file, { force: true });
}

/** A zombie or another program under the same number does not count. */
function isEngine(id: number): boolean {
  try {
    return /^[^\0]*(?:dockerd|containerd)/.test(readFileSync(`/proc/${id}/cmdline`, "utf8"));
  } catch {
    return false;
  }
}
