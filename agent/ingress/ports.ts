import dgram from "node:dgram";
import { readFile } from "node:fs/promises";
import net from "node:net";
import type { IngressSettings } from "./caddy.ts";

const isTaken = (error: NodeJS.ErrnoException): boolean => error.code === "EADDRINUSE";

/** Any other failure, such as a port that only root may have, is not another program's. */
const takesTcp = (address: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = net.createServer();
    server.once("error", (error) => resolve(!isTaken(error)));
    server.listen({ host: address || undefined, port, exclusive: true }, () =>
      server.close(() => resolve(true)),
    );
  });

const takesUdp = (address: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const isIpv6 = address === "" || address.includes(":");
    const socket = dgram.createSocket(isIpv6 ? "udp6" : "udp4");
    socket.once("error", (error) => socket.close(() => resolve(!isTaken(error))));
    socket.bind({ address: address || undefined, port, exclusive: true }, () =>
      socket.close(() => resolve(true)),
    );
  });

/** Asked while the ingress does not run. @returns what to do about ports that another program has; null: none has */
export async function portsTaken({
  address,
  port,
  tls,
}: Pick<IngressSettings, "address" | "port"> & { tls: { port: number } | null }): Promise<string | null> {
  const taken = [
    ...((await takesTcp(address, port)) ? [] : [`TCP port ${port}`]),
    ...(!tls || (await takesTcp(address, tls.port)) ? [] : [`TCP port ${tls.port}`]),
    ...(!tls || (await takesUdp(address, tls.port)) ? [] : [`UDP port ${tls.port}`]),
  ];
  if (taken.length === 0) return null;
  const verb = taken.length === 1 ? "is" : "are";
  return `${taken.join(" and ")} ${verb} in use by another program (ss -tulnp shows it), so no site can be served: stop it, or set BERTH_INGRESS_PORT and BERTH_TLS_PORT in /etc/berth/agent.env.`;
}

/** How many sockets listen at each TCP port on this machine, whatever their addresses (proc_pid_net(5)): programs may share one. */
export async function listenersAt(ports: readonly number[]): Promise<number[]> {
  const tables = await Promise.all(
    ["tcp", "tcp6"].map((name) => readFile(`/proc/net/${name}`, "latin1").catch(() => "")),
  );
  const listening = tables.flatMap((table) =>
    Array.from(table.matchAll(/^ *\d+: [0-9A-F]+:([0-9A-F]{4}) \S+ 0A /gm), ([, port = ""]) =>
      Number.parseInt(port, 16),
    ),
  );
  return ports.map((port) => listening.filter((one) => one === port).length);
}
