import { docker, execute } from "./engine.ts";

/** A machine elsewhere on the internet: its own network, with a cable to this host and nowhere else. */
export type Machine = {
  /** In the format of Docker's `--network`. */
  network: string;
  address: string;
  unplug(): Promise<void>;
};

/**
 * @param name at most 15 letters and digits, unique to the machine; @param net the first three numbers of its
 * addresses
 */
export async function plugIn(name: string, net: string): Promise<Machine> {
  await docker(
    "run",
    "-d",
    "--name",
    name,
    "--network",
    "none",
    "--entrypoint",
    "sleep",
    "redis:7.2",
    "3600",
  );
  const pid = await docker("inspect", "--format", "{{.State.Pid}}", name);
  const ip = (...args: string[]) => execute("ip", args);
  const inside = (...args: string[]) => execute("nsenter", ["-t", pid, "-n", "ip", ...args]);
  await ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", pid);
  await ip("address", "add", `${net}.1/24`, "dev", name);
  await ip("link", "set", name, "up");
  await inside("address", "add", `${net}.2/24`, "dev", "eth0");
  await inside("link", "set", "eth0", "up");
  await inside("route", "add", "default", "via", `${net}.1`);
  return {
    network: `container:${name}`,
    address: `${net}.2`,
    // Its end of the cable is removed with it, and so is this one.
    unplug: async () => void (await docker("rm", "--force", "--volumes", name)),
  };
}
