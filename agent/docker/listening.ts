import { createReadStream } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";

/** 127.0.0.11: Docker's own resolver, in every container of a network. */
const dockerResolver = "0B00007F";

export type Listener = { port: number; loopbackOnly: boolean };

/** Listening sockets of a network namespace, from the text of /proc/<pid>/net/tcp and tcp6 (proc(5)). */
export function parseListeners(...tables: string[]): Listener[] {
  const found = new Map<number, boolean>();
  for (const line of tables.flatMap((table) => table.split("\n").slice(1))) {
    const [, local, , state] = line.trim().split(/\s+/);
    if (state !== "0A" || local === undefined) continue;
    const [address = "", portHex = "0"] = local.split(":");
    if (address === dockerResolver) continue;
    const loopback =
      address.endsWith("7F") || /^0{24}01000000$/.test(address) || /^0{16}0000FFFF.{6}7F$/i.test(address);
    const port = Number.parseInt(portHex, 16);
    found.set(port, (found.get(port) ?? true) && loopback);
  }
  return [...found].map(([port, loopbackOnly]) => ({ port, loopbackOnly }));
}

const established = "01";

/** Counts the open connections to the namespace's own listeners. */
export function countServed(...tables: string[]): number {
  const ports = new Set(parseListeners(...tables).map(({ port }) => port));
  return tables
    .flatMap((table) => table.split("\n").slice(1))
    .map((line) => line.trim().split(/\s+/))
    .filter(
      ([, local, , state]) =>
        state === established && ports.has(Number.parseInt(local?.split(":")[1] ?? "", 16)),
    ).length;
}

/**
 * Listening sockets come first; a site may hold hundreds of thousands of connections, of which a few thousand
 * suffice.
 */
const mostTableBytes = 1024 * 1024;

/** The socket tables of a container, by the process id of its init. Empty if it has ended. */
export const socketTables = (pid: number, proc = "/proc"): Promise<string[]> =>
  Promise.all(
    ["tcp", "tcp6"].map((name) =>
      text(createReadStream(join(proc, String(pid), "net", name), { end: mostTableBytes - 1 })).catch(
        () => "",
      ),
    ),
  );
