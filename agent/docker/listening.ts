export type Listener = { port: number; loopbackOnly: boolean };

/** Listening sockets of a network namespace, from the text of /proc/<pid>/net/tcp and tcp6 (proc(5)). */
export function parseListeners(...tables: string[]): Listener[] {
  const found = new Map<number, boolean>();
  for (const line of tables.flatMap((table) => table.split("\n").slice(1))) {
    const [, local, , state] = line.trim().split(/\s+/);
    if (state !== "0A" || local === undefined) continue;
    const [address = "", portHex = "0"] = local.split(":");
    const loopback =
      address.endsWith("7F") || /^0{24}01000000$/.test(address) || /^0{16}0000FFFF.{6}7F$/i.test(address);
    const port = Number.parseInt(portHex, 16);
    found.set(port, (found.get(port) ?? true) && loopback);
  }
  return [...found].map(([port, loopbackOnly]) => ({ port, loopbackOnly }));
}
