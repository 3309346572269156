import { createPrivateKey, X509Certificate } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { join } from "node:path";
import * as z from "zod";
import { Network } from "../../protocol/api/public-access.ts";
import type { Engine } from "../docker/engine.ts";
import { networkName } from "../docker/specs.ts";
import { JobError } from "../job.ts";
import { log } from "../log.ts";
import type { PublicPort } from "../isolation/rules.ts";
import { isAuthorityFit, makeAuthority, type Pair } from "./certificates.ts";
import { containerName } from "../docker/database-objects.ts";
import { label } from "../docker/labels.ts";

const port = z.number().int().min(1).max(65535);
const Entry = z.object({ port, allow: z.array(Network), containerPort: port });
type Entry = z.infer<typeof Entry>;
const Entries = z.record(z.string(), Entry);
const Authority = z
  .object({ key: z.string(), certificate: z.string() })
  .refine(({ key, certificate }) => new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key)));

/** The databases with public access, and the host's certificate authority: two files of the host. */
export type PublicAccess = {
  authority(): Promise<Pair>;
  /** The host's public address. @throws JobError if none is configured and it cannot be determined */
  address(): Promise<string>;
  /** @returns whether anything changed */
  set(databaseId: string, entry: Entry | null): boolean;
  has(databaseId: string): boolean;
  /** The port forwards to running databases, at their current addresses. */
  publicPorts(engine: Pick<Engine, "inspectContainer">): Promise<PublicPort[]>;
};

export function openPublicAccess(folder: string, agentId: string, address?: string): PublicAccess {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const entriesFile = join(folder, "ports.json");
  const authorityFile = join(folder, "authority.json");
  let entries = read(entriesFile, Entries) ?? {};
  let authority: Promise<Pair> | null = null;
  const readOrMake = async (present: Pair | null): Promise<Pair> => {
    if (present !== null && isAuthorityFit(present.certificate, new Date())) return present;
    const made = await makeAuthority(`Berth host ${agentId}`, new Date());
    write(authorityFile, made);
    return made;
  };
  return {
    // Serialized, so that concurrent callers get the same authority.
    authority() {
      const before = authority?.catch(() => null) ?? Promise.resolve(null);
      return (authority = before.then((present) => readOrMake(present ?? read(authorityFile, Authority))));
    },
    address: async () => address ?? (await ownAddress()),
    set(databaseId, entry) {
      const { [databaseId]: before, ...others } = entries;
      const after = entry === null ? others : { ...others, [databaseId]: entry };
      if (JSON.stringify(before ?? null) === JSON.stringify(entry)) return false;
      write(entriesFile, after);
      entries = after;
      return true;
    },
    has: (databaseId) => entries[databaseId] !== undefined,
    async publicPorts(engine) {
      const found = await Promise.all(
        Object.entries(entries).map(async ([databaseId, entry]) => {
          const container = await engine.inspectContainer(containerName(databaseId));
          const address = container?.addresses[networkName(container.labels[label.account] ?? "")];
          const leads = container?.running && container.labels[label.guarded] === "true" && address;
          return leads ? [{ ...entry, address }] : [];
        }),
      );
      return found.flat();
    },
  };
}

function read<T>(file: string, schema: z.ZodType<T>): T | null {
  try {
    return schema.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT")
      log("error", "A file of public access is unreadable and is recreated", { file, error });
    return null;
  }
}

function write(file: string, value: unknown): void {
  writeFileSync(`${file}.new`, JSON.stringify(value), { mode: 0o600, flush: true });
  renameSync(`${file}.new`, file);
}

/** The address of the interface that routes to the internet; no packet is sent. */
async function ownAddress(): Promise<string> {
  const socket = createSocket("udp4");
  try {
    socket.connect(53, "1.1.1.1");
    await once(socket, "connect");
    return socket.address().address;
  } catch (cause) {
    throw new JobError(
      "This host cannot determine its public address: ask its operator to set BERTH_PUBLIC_ADDRESS.",
      { cause },
    );
  } finally {
    socket.close();
  }
}
