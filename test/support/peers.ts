import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import type { Peers } from "../../agent/ingress/peers.ts";
import {
  issuePeerCertificate,
  makePeerAuthority,
  type PeerAuthority,
} from "../../worker/adapters/peer-authority.ts";

export const newAuthority = (): Promise<PeerAuthority> => makePeerAuthority(new Date());

/** What a host knows of the others, as its agent writes it. */
export async function peersOf(
  authority: PeerAuthority,
  hostId: string,
  port: number,
  more: Partial<Peers> = {},
): Promise<Peers> {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const asked = { hostId, publicKey: publicKey.export({ type: "spki", format: "der" }).toString("base64") };
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    address: "127.0.0.1",
    port,
    certificate: await issuePeerCertificate(authority, asked, new Date()),
    authority: authority.certificate,
    from: [],
    sites: [],
    hosts: ["host_a", "host_b"],
    ...more,
  };
}

export const writePeers = (file: string, peers: Peers): void => writeFileSync(file, JSON.stringify(peers));
