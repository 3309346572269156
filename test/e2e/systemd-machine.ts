import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { dockerSocket } from "../../scripts/lib/docker-engine.ts";
import { freePort } from "../../scripts/lib/state.ts";
import { openWay } from "../support/open-way.ts";
import { until } from "./service.ts";

const execute = promisify(execFile);
const docker = async (...args: string[]): Promise<string> =>
  (
    await execute("docker", args, {
      maxBuffer: 64 * 1024 * 1024,
      env: { ...process.env, DOCKER_BUILDKIT: "0" },
    })
  ).stdout.trim();

const image = "systemd-machine";
const unconfined = ["seccomp", "apparmor", "systempaths"]
  .map((what) => `--security-opt ${what}=unconfined`)
  .join(" ");
const folderOfImage = join(import.meta.dirname, "../support/systemd-machine");

/** A machine whose first process is systemd, with an engine, a network and a disk of its own. */
export type SystemdMachine = {
  /** Where its port 80 is met. */
  ingressPort: number;
  /** A line for its shell; answers what it printed. @throws with what it said when it fails */
  run(line: string): Promise<string>;
  reboot(): Promise<void>;
  /** Its power fails, and comes back. */
  failPower(): Promise<void>;
  remove(): Promise<void>;
};

/** @param ports of the loopback address here, which are its own as well */
export async function startSystemdMachine(ports: number[]): Promise<SystemdMachine> {
  // As long as the Dockerfile and what it copies stay the same, this is the engine's cache.
  await docker("build", "--quiet", "--label", "berth.stand-in=true", "--tag", image, folderOfImage);
  const folder = mkdtempSync(join(tmpdir(), "machine-"));
  const ways = await Promise.all(ports.map((port) => openWay(join(folder, `${port}.socket`), port)));
  const ingressPort = await freePort();
  const kind = "--detach --label berth.test=true --cgroupns private";
  // All that --privileged gives, but for a capability that not every machine has to give.
  const rights = `--cap-add ALL --cap-drop SYS_RESOURCE ${unconfined}`;
  const memory = "--tmpfs /run:exec --tmpfs /run/lock --tmpfs /tmp:exec";
  const id = await docker(
    "run",
    ...`${kind} ${rights} ${memory} --publish 127.0.0.1:${ingressPort}:80`.split(" "),
    "--device-cgroup-rule=a *:* rwm",
    `--volume=${folder}:/outside`,
    `--volume=${dockerSocket()}:/outside/engine.socket`,
    image,
  );
  const run = (line: string) => docker("exec", id, "sh", "-c", line);
  const untilUp = () =>
    until(
      () => run("systemctl is-system-running || true").catch(String),
      (state) => state === "running" || state === "degraded",
      60_000,
    );
  const machine = {
    ingressPort,
    run,
    async reboot() {
      await docker("restart", "--time", "60", id);
      await untilUp();
    },
    async failPower() {
      await docker("kill", id);
      await docker("start", id);
      await untilUp();
    },
    async remove() {
      await docker("rm", "--force", "--volumes", id);
      for (const way of ways) await way.close();
      rmSync(folder, { recursive: true });
    },
  };
  try {
    await untilUp();
    await run(`systemctl enable --now ${ports.map((port) => `outside@${port}.socket`).join(" ")}`);
  } catch (error) {
    await machine.remove();
    throw error;
  }
  return machine;
}
