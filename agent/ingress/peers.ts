import { createPrivateKey, createPublicKey, generateKeyPairSync } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import * as z from "zod";
import type { ToAgent } from "../../protocol/agent/messages.ts";
import { log } from "../log.ts";
import { writeAtomically } from "../write-atomically.ts";

/** What this host is to others of the installation, and they to it: one file, replaced as a whole. */
export const Peers = z.object({
  /** Its private key, as PEM. */
  key: z.string(),
  /** Where it takes others' requests; empty: at all its addresses. */
  address: z.string(),
  port: z.int().min(1).max(65_535),
  /** Of this key, and of who issued it, as PEM; null: the control plane has sent none yet. */
  certificate: z.string().nullable(),
  authority: z.string().nullable(),
  /** Hosts whose requests are taken now. */
  from: z.array(z.string()),
  /** Sites that they may ask for. */
  sites: z.array(z.string()),
  /** All hosts of the installation: of others no connection stays open. */
  hosts: z.array(z.string()),
});
export type Peers = z.infer<typeof Peers>;

/** Beside the routes. */
export const peersFileOf = (routesFile: string): string => `${dirname(routesFile)}/peers.json`;

/** @throws Error if there is none, or it is damaged */
export const readPeers = (file: string): Peers => Peers.parse(JSON.parse(readFileSync(file, "utf8")));

type Told = Omit<Extract<ToAgent, { type: "peers" }>, "type" | "forwards">;

/** The agent's side. The key is made here and never leaves the host; without a valid file another one is made. */
export function openPeers(file: string, { address, port }: Pick<Peers, "address" | "port">) {
  mkdirSync(dirname(file), { recursive: true });
  let peers: Peers;
  try {
    const found = readPeers(file);
    createPrivateKey(found.key);
    peers = { ...found, address, port };
  } catch {
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const key = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    peers = { key, address, port, certificate: null, authority: null, from: [], sites: [], hosts: [] };
  }
  const keep = (next: Peers) => {
    peers = next;
    writeAtomically(file, JSON.stringify(next));
  };
  try {
    keep(peers);
  } catch (error) {
    log("error", "The key for requests of other hosts was not stored; there is another one after a restart", {
      error,
    });
  }
  return {
    /** As the control plane learns of it. `publicKey`: SubjectPublicKeyInfo (RFC 5280), base64. */
    facts: () => ({
      port,
      publicKey: createPublicKey(peers.key).export({ type: "spki", format: "der" }).toString("base64"),
    }),
    take: ({ certificate, authority, from, sites, hosts }: Told) =>
      keep({ ...peers, certificate, authority, from, sites, hosts }),
  };
}
